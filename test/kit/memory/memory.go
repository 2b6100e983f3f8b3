// Package memory measures what code allocates and keeps, for tests of limits. Other
// goroutines count too, so nothing else may run beside a measurement.
package memory

import "runtime"

// Allocated returns the bytes that a call allocates, whether or not they are freed.
func Allocated(call func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// InUse returns the bytes on the heap that are still reachable.
func InUse() int {
	runtime.GC()
	runtime.GC() // what only a pool or a finalizer held after the first one
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}
