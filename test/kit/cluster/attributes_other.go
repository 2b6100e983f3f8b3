//go:build !linux

package cluster

import "syscall"

// attributes keep Ctrl-C for the parent process.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
