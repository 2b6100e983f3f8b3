package cache

import (
	"sync/atomic"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// MemoryStats counts what happens to the entries of one kind in memory. All fields may be
// read at any time.
type MemoryStats struct {
	// Hits and Misses are lookups. An expired entry is a miss.
	Hits, Misses atomic.Int64
	// Overflowed are entries that had to go because the memory was full, OverShare those
	// that had to go because their account had no more of it.
	Overflowed, OverShare atomic.Int64
	// Entries and Bytes are what is kept now, in estimated bytes.
	Entries, Bytes atomic.Int64
}

func (s *MemoryStats) entered(weight uint32) {
	s.Entries.Add(1)
	s.Bytes.Add(int64(weight))
}

func (s *MemoryStats) left(weight uint32, overflow bool) {
	s.Entries.Add(-1)
	s.Bytes.Add(-int64(weight))
	if overflow {
		s.Overflowed.Add(1)
	}
}

// memoryStats has the counters of each kind, on cache lines of their own: all requests
// count here.
type memoryStats struct {
	_       [64]byte
	verdict MemoryStats
	_       [64]byte
	tag     MemoryStats
}

func (m *memoryStats) of(kind verify.Kind) *MemoryStats {
	if kind == verify.KindTag {
		return &m.tag
	}
	return &m.verdict
}

// Stats returns the counters of a kind of entries.
func (m *Memory) Stats(kind verify.Kind) *MemoryStats { return m.stats.of(kind) }

// Size returns how many bytes the entries may take.
func (m *Memory) Size() int64 { return m.size }
