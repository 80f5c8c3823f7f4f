#!/usr/lib/vmtune/bin/python3 -I
import sys

from vmtune.client.cli import main

sys.exit(main())
