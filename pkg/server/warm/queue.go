package warm

import (
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// target is an image in a namespace.
type target struct {
	namespace verify.Namespace
	image     string
}

// job is a target that waits for verification.
type job struct {
	target
	renew bool // bypass the cache
	tries int  // undecided attempts
	due   time.Time
}

// queue holds each target once. Accounts take turns, one job of an account at a time: neither
// an account's number of images nor its slow registry delays another. The workqueue orders
// the accounts; the jobs of an account are served as they fall due.
type queue struct {
	total, each int // most jobs that may wait
	turns       workqueue.TypedDelayingInterface[verify.Account]

	mu      sync.Mutex
	waiting int
	jobs    map[verify.Account][]*job // the earliest first
}

func newQueue(total, each int) *queue {
	return &queue{total: total, each: each, jobs: map[verify.Account][]*job{},
		turns: workqueue.NewTypedDelayingQueue[verify.Account]()}
}

// add queues a job of an account, or merges it into one for the same target. It reports false
// if there is no space.
func (q *queue) add(account verify.Account, j job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	own := q.jobs[account]
	if i := slices.IndexFunc(own, func(same *job) bool { return same.target == j.target }); i >= 0 {
		own[i].renew = own[i].renew || j.renew
		return true
	}
	if q.waiting >= q.total || len(own) >= q.each {
		return false
	}
	at, _ := slices.BinarySearchFunc(own, j.due, func(other *job, due time.Time) int {
		if other.due.After(due) {
			return 1
		}
		return -1 // after those that are due at the same time
	})
	q.jobs[account] = slices.Insert(own, at, &j)
	q.waiting++
	q.turns.AddAfter(account, time.Until(j.due))
	return true
}

// take waits for a job until the queue is shut down. Call done after serving it.
func (q *queue) take() (verify.Account, *job, bool) {
	for {
		account, ended := q.turns.Get()
		if ended || q.turns.ShuttingDown() { // the rest is left waiting
			return "", nil, false
		}
		if j := q.next(account); j != nil {
			return account, j, true
		}
		q.done(account)
	}
}

// next removes and returns the job that has been due for longest, nil if none is due.
func (q *queue) next(account verify.Account) *job {
	q.mu.Lock()
	defer q.mu.Unlock()
	own := q.jobs[account]
	if len(own) == 0 || own[0].due.After(time.Now()) {
		return nil
	}
	q.waiting--
	j := own[0]
	if q.jobs[account] = slices.Delete(own, 0, 1); len(own) == 1 {
		delete(q.jobs, account)
	}
	return j
}

// done ends the turn of an account. Its next turn comes when its next job is due.
func (q *queue) done(account verify.Account) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if own := q.jobs[account]; len(own) > 0 {
		q.turns.AddAfter(account, time.Until(own[0].due))
	}
	q.turns.Done(account)
}
