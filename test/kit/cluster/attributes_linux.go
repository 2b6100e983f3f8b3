package cluster

import "syscall"

// attributes make a process end with the one that started it, also when that is
// killed, and keep Ctrl-C for that one.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
