package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// tick is the unit of times in /proc/PID/stat, which is the same on every Linux that
// Go runs on (USER_HZ).
const tick = 10 * time.Millisecond

// processor returns the processor time that a process has used, zero where there is
// no /proc.
func processor(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// Fields are counted from the end of the name, which may hold blanks (proc(5):
	// utime is field 14, stime 15).
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(string(fields[11]), 10, 64) // the kernel writes numbers
	system, _ := strconv.ParseInt(string(fields[12]), 10, 64)
	return time.Duration(user+system) * tick
}

// resident returns how many MiB of memory a process has, zero where there is no
// /proc.
func resident(pid int) int { return int(memory(pid).resident) }

// usage is memory in MiB.
type usage struct {
	resident float64
	own      float64 // without pages of files, such as of the program, that the kernel can drop
}

// memory returns what a process has, zero where there is no /proc.
func memory(pid int) usage {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return usage{}
	}
	// proc(5): size, resident and shared are the first three, in pages.
	fields := bytes.Fields(text)
	if len(fields) < 3 {
		return usage{}
	}
	pages, _ := strconv.Atoi(string(fields[1])) // the kernel writes numbers
	shared, _ := strconv.Atoi(string(fields[2]))
	mib := func(pages int) float64 { return float64(pages*os.Getpagesize()) / (1 << 20) }
	return usage{resident: mib(pages), own: mib(pages - shared)}
}
