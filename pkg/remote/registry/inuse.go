package registry

import "sync"

// inUse keeps values by their keys. Unused values are in a cache of bounded size; values in use stay,
// since evicting one would give its next user another limit.
type inUse[K comparable, V any] struct {
	idle recent[K, V]

	mu    sync.Mutex
	using map[K]*used[V]
}

type used[V any] struct {
	value V
	by    int
}

// take returns the value of key, or creates it. The caller leaves it once.
func (s *inUse[K, V]) take(key K, fresh func() V) (value V, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ok := s.using[key]
	if !ok {
		kept, ok := s.idle.GetIfPresent(key)
		if !ok {
			kept = fresh()
		}
		u = &used[V]{value: kept}
		if s.using == nil {
			s.using = map[K]*used[V]{}
		}
		s.using[key] = u
	}
	u.by++
	return u.value, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if u.by--; u.by == 0 {
			delete(s.using, key)
			s.idle.Set(key, u.value)
		}
	}
}
