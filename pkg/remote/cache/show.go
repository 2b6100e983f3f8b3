package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/redis/go-redis/v9"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// Shown is one value in Redis, opened for a cluster admin. It has the text of a denial, and
// no evidence.
type Shown struct {
	Kind  string
	Image string // host/repository@digest
	// UID is the namespace's UID when the value was sealed.
	UID, Generation, Program string
	// Verdict is Undecided, which is never cached, if the value did not open.
	Verdict          policy.Verdict
	Written, Expires time.Time
	// Unopened says why the value did not open; the fields above are then empty.
	Unopened error
}

// Listing is the result of [Show].
type Listing struct {
	Entries []Shown
	// Keys is the number of keys that were read, Unopened the number that did not open, and
	// LeftOff the number of entries beyond the limit.
	Keys, Unopened, LeftOff int
}

// Show opens the values of a namespace, or of cluster scope with [verify.Cluster], and returns at most limit of them,
// without evidence. If of is not empty, they are the values of one repository, host/repository, or of one digest of
// it, host/repository@digest. The image of a value that does not open is unknown, so such values are only counted
// then. It scans all keys, as [Usage] does, and stops at the first error.
func Show(ctx context.Context, client redis.UniversalClient, seal *Seal, namespace verify.Namespace, of string,
	limit int) (Listing, error) {
	var mu sync.Mutex
	var found Listing
	err := scan(ctx, client, keyPrefix(namespace)+"*", func(ctx context.Context, node redis.Cmdable, names []string) error {
		for batch := range slices.Chunk(names, showBatch) {
			values, err := readValues(ctx, node, batch)
			if err != nil {
				return err
			}
			mu.Lock()
			for i, name := range batch {
				switch _, kind := readKey(name); {
				case values[i].Val() == "": // it expired meanwhile
				case kind == string(verify.KindEvidence): // its image is another one
					found.Keys++
				default:
					found.add(shownOf(seal, namespace, name, []byte(values[i].Val())), of, limit)
				}
			}
			mu.Unlock()
		}
		return nil
	})
	slices.SortFunc(found.Entries, func(a, b Shown) int {
		return cmp.Or(strings.Compare(a.Image, b.Image), b.Written.Compare(a.Written), strings.Compare(a.UID, b.UID))
	})
	return found, err
}

// readValues returns the beginning of each value: anyone who can write to Redis chooses its
// length.
func readValues(ctx context.Context, node redis.Cmdable, names []string) ([]*redis.StringCmd, error) {
	values := make([]*redis.StringCmd, len(names))
	if _, err := node.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, name := range names {
			values[i] = pipe.GetRange(ctx, name, 0, maxValueBytes)
		}
		return nil
	}); err != nil {
		return nil, fmt.Errorf("read values: %w", err)
	}
	return values, nil
}

// shownOf opens one value, with the keys of the UID in its header: with a wrong UID, no key
// fits.
func shownOf(seal *Seal, namespace verify.Namespace, name string, value []byte) Shown {
	_, kind := readKey(name)
	shown := Shown{Kind: kind, Verdict: policy.NotDecided(policy.ObjectRef{}, "")}
	uid, err := sealedFor(value)
	var wire wireEntry
	var entry verify.Entry
	var expires time.Time
	if err == nil {
		wire, entry, expires, err = open(seal, scope{namespace, uid}, name, value)
	}
	if err != nil {
		shown.Unopened = err
		return shown
	}
	shown.Image, shown.UID, shown.Generation, shown.Program = wire.Image, uid, wire.Generation, wire.Program
	shown.Verdict, shown.Written, shown.Expires = entry.Verdict, time.UnixMilli(wire.Written), expires
	return shown
}

// add counts a value, and keeps it if it is wanted and there is room.
func (l *Listing) add(shown Shown, of string, limit int) {
	l.Keys++
	switch {
	case shown.Unopened != nil:
		if l.Unopened++; of != "" {
			return
		}
	case of != "" && shown.Image != of && !strings.HasPrefix(shown.Image, of+"@"):
		return
	}
	if len(l.Entries) >= limit {
		l.LeftOff++
		return
	}
	l.Entries = append(l.Entries, shown)
}

// lookKey is in no namespace: a namespace has no underscore.
const lookKey = "landwaiter:_look:probe"

// Condition is the state of Redis and Landwaiter's permissions in it.
type Condition struct {
	// Err is why Redis does not answer, nil if it does. Answer is its answer if it refuses every command.
	Err    error
	Answer string
	// Took is how long a read took on an open connection. Slow says that no request waits that long.
	Took time.Duration
	Slow bool
	// Denied are the commands that Landwaiter needs but its user may not send.
	Denied []string
	// Memory is false if the user may not read the memory settings. Full is the policy of a
	// Redis that refuses writes once it is full, and Refused the answer of a Redis that is full.
	Memory  bool
	Full    string
	Refused string
}

// Look tries each command that Landwaiter sends, on a separate key.
func (r *Redis) Look(ctx context.Context) Condition {
	ctx, cancel := context.WithTimeout(ctx, lookBudget)
	defer cancel()
	var found Condition
	client := r.current.Load()
	for _, try := range []struct {
		command string
		send    func() error
	}{
		{"SET", func() error { return client.Set(ctx, lookKey, "", lookLifetime).Err() }},
		{"GETRANGE", func() error { return client.GetRange(ctx, lookKey, 0, 1).Err() }},
		{"SCAN", func() error { return client.Scan(ctx, 0, lookKey, 1).Err() }},
		{"UNLINK", func() error { return client.Unlink(ctx, lookKey).Err() }},
	} {
		err := try.send()
		switch {
		case err == nil:
		case redis.HasErrorPrefix(err, "OOM"):
			found.Refused = shown(err)
		case redis.HasErrorPrefix(err, "NOPERM"), redis.HasErrorPrefix(err, "ERR unknown command") &&
			(try.command == "SCAN" || try.command == "UNLINK"):
			found.Denied = append(found.Denied, try.command)
		default:
			found.Err = fmt.Errorf("send %s: %w", try.command, err)
			var answer redis.Error
			if errors.As(err, &answer) {
				found.Answer = shown(answer)
			}
			return found
		}
	}
	began := time.Now()
	if err := client.GetRange(ctx, lookKey, 0, 1).Err(); err == nil {
		found.Took = time.Since(began)
		found.Slow = found.Took > redisBudget
	}
	settings, err := client.Info(ctx, "memory").Result()
	if err != nil {
		return found
	}
	found.Memory = true
	limit, policy := setting(settings, "maxmemory"), setting(settings, "maxmemory_policy")
	if limit != "0" && policy == "noeviction" {
		found.Full = policy
	}
	return found
}

// shown returns the text of an error for people. Of Redis' answers, it only shows those that contain nothing but the
// error: others may contain an address, or the arguments of an unknown command, such as the password.
func shown(err error) string {
	var answer redis.Error
	if !errors.As(err, &answer) {
		return err.Error()
	}
	text := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(answer.Error(), "?"))
	known := []string{"WRONGPASS", "NOAUTH", "NOPERM", "LOADING", "READONLY", "MASTERDOWN", "MISCONF", "OOM", "ERR DB index",
		"ERR max number of clients"}
	if !slices.ContainsFunc(known, func(begin string) bool { return strings.HasPrefix(text, begin) }) {
		text, _, _ = strings.Cut(text, " ")
	}
	return text[:min(len(text), maxAnswerBytes)]
}

// setting returns a line of INFO.
func setting(text, name string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return value
		}
	}
	return ""
}

// MemoryStats counts events of one kind of entries in memory. All fields may be read at any
// time.
type MemoryStats struct {
	// Hits and Misses are lookups. An expired entry is a miss.
	Hits, Misses atomic.Int64
	// Overflowed counts entries that were evicted because the memory was full, OverShare entries
	// that were evicted because their account had used up its share.
	Overflowed, OverShare atomic.Int64
	// Entries and Bytes are the current number and estimated bytes.
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

// memoryStats has the counters of each kind, on separate cache lines: all requests count
// here.
type memoryStats struct {
	_       [64]byte
	verdict MemoryStats
	_       [64]byte
	tag     MemoryStats

	evidence MemoryStats
}

func (m *memoryStats) of(kind verify.Kind) *MemoryStats {
	switch kind {
	case verify.KindTag:
		return &m.tag
	case verify.KindEvidence:
		return &m.evidence
	case verify.KindVerdict:
	}
	return &m.verdict
}

// Stats returns the counters of a kind of entries.
func (m *Memory) Stats(kind verify.Kind) *MemoryStats { return m.stats.of(kind) }

// Size returns the maximum size of the entries in bytes.
func (m *Memory) Size() int64 { return m.size }
