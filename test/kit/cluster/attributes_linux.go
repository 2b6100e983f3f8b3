package cluster

import "syscall"

// attributes make a process end with its parent, even if that is killed, and keep
// Ctrl-C for the parent.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
