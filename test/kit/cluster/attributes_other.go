//go:build !linux

package cluster

import "syscall"

// attributes keep Ctrl-C for the process that started this one.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
