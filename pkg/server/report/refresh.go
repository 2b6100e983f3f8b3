package report

import (
	"cmp"
	"hash/maphash"
	"iter"
	"slices"
	"time"

	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/workload"
)

// room is the space of a namespace at the leader: its share of its account's.
type room struct {
	images          int // with a verdict
	running, denied int // bytes of results
}

// refresh updates what runs and how it was verified, within the space. It returns the new
// states, which the caller stores once the revocations have been announced: until then, the
// next leader finds the old ones, and announces them again with the same names.
func (s *space) refresh(running iter.Seq[workload.Running], known findings, room room,
	now time.Time) (next map[string]state, revoked []revocation) {
	r := &refreshing{space: s, known: known, room: room, now: now, next: map[string]state{}, out: map[uint64]struct{}{},
		seed: maphash.MakeSeed()}
	for row := range s.rows {
		r.size += sizeOf(row)
	}
	for row := range running {
		r.take(row)
	}
	for row, seen := range s.rows {
		if now.Sub(seen) > goneFor {
			delete(s.rows, row)
			r.size -= sizeOf(row)
		}
	}
	r.cut()
	s.rowsOut = len(r.out)
	slices.SortFunc(r.revoked, func(a, b revocation) int { return cmp.Compare(a.image, b.image) })
	return r.next, r.revoked
}

// refreshing is one call of refresh.
type refreshing struct {
	*space
	known findings
	room  room
	now   time.Time

	next    map[string]state
	revoked []revocation

	size int // of the kept rows
	// last is the first row, in the order of reports, that did not fit. Later rows need not be
	// kept to know that.
	last *workload.Running
	// out are hashes of the omitted rows that run: a row may come several times.
	out  map[uint64]struct{}
	seed maphash.Seed
}

// judge returns the next state of an image. It returns false if there is none: the image was
// not verified yet, or does not fit.
func (r *refreshing) judge(image string) bool {
	if _, done := r.next[image]; done {
		return true
	}
	before := r.images[image]
	found, ok := r.known.images[image]
	switch {
	case !ok && (before == state{} || !r.fits(before)):
		return false
	case !ok, found.at.Before(before.since): // the previous leader verified it later than this process
		r.next[image] = before
		return true
	}
	after, denied := before.next(found, r.now)
	if allows(resultOf(found.result)) && r.deniedBetween(image, after, found.at) {
		after.since = found.at.UTC().Truncate(time.Second)
	}
	r.next[image] = after
	if denied {
		_, since := before.decided()
		r.revoked = append(r.revoked, revocation{image, since, after})
	}
	return true
}

// deniedBetween reports whether a new pod with an image was denied after the image was allowed, and before it was
// last verified: the rules denied it while running images were not verified. The reported start of being allowed must
// be later than that denial.
func (r *refreshing) deniedBetween(name string, allowed state, verified time.Time) bool {
	if len(r.denials) == 0 {
		return false
	}
	ref, err := image.Parse(name)
	if err != nil {
		return false
	}
	d := r.denials[ref.String()]
	return d != nil && d.last.After(allowed.since) && verified.After(d.last.Add(time.Second)) &&
		(d.digest == "" || allowed.digest == "" || d.digest == allowed.digest)
}

// fits reports whether there is space for an image that is only known from earlier. A bad one
// can replace a good one.
func (r *refreshing) fits(before state) bool {
	if allows(before.result) {
		return len(r.next) < r.room.images
	}
	return len(r.next) < 2*r.room.images
}

// take keeps a row that runs, or counts it as omitted.
func (r *refreshing) take(row workload.Running) {
	_, kept := r.rows[row]
	judged := r.judge(row.Image)
	switch {
	case kept:
		r.rows[row] = r.now
	case !judged, sizeOf(row) > maxResultBytes, r.last != nil && byWorst(r.next)(row, *r.last) >= 0:
		r.leaveOut(row)
	default:
		r.rows[row] = r.now
		if r.size += sizeOf(row); r.size > 2*r.room.running {
			r.cut()
		}
	}
}

// leaveOut counts a row that runs, unless its image is not verified yet.
func (r *refreshing) leaveOut(row workload.Running) {
	_, judged := r.next[row.Image]
	if verified := judged || r.known.full || r.images[row.Image] != (state{}); verified && len(r.out) < maxLeftOut {
		r.out[maphash.Comparable(r.seed, row)] = struct{}{}
	}
}

// cut drops the rows whose image has no state, and the last ones in reports that do not fit.
func (r *refreshing) cut() {
	var rows []workload.Running
	for row := range r.rows {
		if !r.judge(row.Image) {
			r.drop(row)
			continue
		}
		rows = append(rows, row)
	}
	if r.size <= r.room.running {
		return
	}
	slices.SortFunc(rows, byWorst(r.next))
	size := 0
	for i, row := range rows {
		if size += sizeOf(row); size <= r.room.running {
			continue
		}
		r.last = &row
		for _, row := range rows[i:] {
			r.drop(row)
		}
		return
	}
}

func (r *refreshing) drop(row workload.Running) {
	if r.rows[row].Equal(r.now) {
		r.leaveOut(row)
	}
	delete(r.rows, row)
	r.size -= sizeOf(row)
}

// sizeOf returns a lower bound on the size of a row's result in a report, so that no row is
// dropped that would fit.
func sizeOf(row workload.Running) int {
	return minResultBytes + len(row.Of.APIVersion) + len(row.Of.Kind) + len(row.Of.Name) + len(row.Of.UID) + len(row.ContainerType) +
		len(row.Container) + len(row.Image)
}

// byWorst orders rows by the states of their images, as reports do: the worst first.
func byWorst(images map[string]state) func(a, b workload.Running) int {
	rank := func(row workload.Running) int {
		if n := severityOrder(images[row.Image].result); n >= 0 {
			return n
		}
		return len(severities()) // it is not reported yet
	}
	return func(a, b workload.Running) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), workload.Compare(a.Of, b.Of), cmp.Compare(a.ContainerType, b.ContainerType),
			cmp.Compare(a.Container, b.Container), cmp.Compare(a.Image, b.Image))
	}
}
