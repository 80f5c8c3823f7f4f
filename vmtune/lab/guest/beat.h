/*
 * The heartbeat: a byte on the debug console's port every `beat_ms`, '0' plus the worker's
 * number, so '0' for the first. It is checked twice a millisecond in the midst of writing, and
 * while the worker rests.
 *
 * It is for the host: the guest's own clock stands still while the guest does, as at the end of
 * a migration, so only who hears the beats, and notes when, knows how long that was. QEMU has the
 * port with
 *
 *   -chardev socket,id=beat,path=/a/path,server=on,wait=off
 *   -device isa-debugcon,chardev=beat,iobase=0xe9
 *
 * on source and destination, with a path each; or with server=off, and one socket on which the
 * listener waits for both. libvirt has it as
 *
 *   <serial type='unix'>
 *     <source mode='connect' path='/a/path'/>
 *     <target type='isa-debug' port='1'><model name='isa-debugcon'/></target>
 *     <address type='isa' iobase='0xe9'/>
 *   </serial>
 *
 * Beats that nobody has connected for are lost without harm; but one who has has to read on: a
 * unix socket holds some 280 unread beats, then QEMU waits, and the guest with it. Without the
 * device the port leads nowhere.
 */
#ifndef GUEST_BEAT_H
#define GUEST_BEAT_H

#define BEAT_PORT 0xe9

#endif
