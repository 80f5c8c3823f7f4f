#!/bin/sh
# Make the environment that the package bundles:  environment.sh FOLDER
#
# Runs where the package is built: in FOLDER (below the package's root) comes a virtual environment
# of the system's Python, with what runtime.lock names, its hashes checked, and the wheel.
# libvirt-python is compiled; all else comes as its projects released it.
set -eu
folder=$1
python=$(readlink -f /usr/bin/python3)
install() { uv pip install --quiet --python "$folder/bin/python3" --link-mode copy "$@"; }

"$python" -m venv --without-pip --symlinks "$folder"
install --require-hashes --only-binary :all: -r compiling.lock
# Not from the cache: there may be one of another libvirt.
eval "$(dpkg-buildflags --export=sh)"
awk '/^libvirt-python==/ {on = 1} on {print} on && !/\\$/ {exit}' runtime.lock >libvirt.lock
install --no-cache --no-deps --require-hashes --no-build-isolation --no-binary :all: -r libvirt.lock
install --require-hashes --only-binary :all: --no-binary libvirt-python -r runtime.lock
install --no-deps ./vmtune-*.whl
uv pip uninstall --quiet --python "$folder/bin/python3" setuptools

# The package has one command. Other programs of its libraries are removed.
find "$folder/bin" -mindepth 1 ! -name 'python*' -delete
rm -rf "$folder/include" "$folder/share" "$folder/.gitignore" "$folder/.lock"
# Nothing may say where it was built.
sed -i '/^command = /d' "$folder/pyvenv.cfg"
find "$folder" \( -name direct_url.json -o -name uv_cache.json -o -name uv_build.json \) -delete
site=$(echo "$folder"/lib/python3.*/site-packages)
# Tests of others' libraries, and what those were compiled from: a sixth of it all.
find "$site" -path "$site/vmtune" -prune -o -type d -name tests -prune -exec rm -rf {} +
find "$site" -path "$site/vmtune" -prune -o -type f \( -name '*.c' -o -name '*.pyx' \) -exec rm {} +
strip --strip-unneeded "$site"/libvirtmod*.so
# Compiled here, and not checked against the sources at each start: root's first call would
# otherwise write files that no package owns.
find "$folder" -name __pycache__ -prune -exec rm -rf {} +
"$python" -m compileall -q -j 0 --invalidation-mode unchecked-hash \
    -s "${folder%/usr/*}" -p / "$site"
python3 copyright.py "$site" package-lock.json >debian/copyright
