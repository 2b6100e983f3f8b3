package revocation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/landwaiter/landwaiter/pkg/verify"
)

// shelf holds the answers of one namespace.
type shelf struct {
	answers map[string]*answer
	queued  int
	bytes   int
}

// answer is what a responder said to one question, or will.
type answer struct {
	question  question
	namespace verify.Namespace
	tried     chan struct{} // closed after the first fetch

	// Guarded by Ahead.mu.
	content  []byte
	fetched  bool
	err      error // of the last fetch
	failures int
	due      time.Time // when to fetch next
	used     time.Time
	queued   bool
}

// want returns the answer to a question, and has it fetched if it is due. It
// returns nil if the namespace has too much waiting.
func (a *Ahead) want(namespace verify.Namespace, q question) *answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, ok := a.shelves[namespace]
	if !ok {
		s = &shelf{answers: map[string]*answer{}}
		a.shelves[namespace] = s
	}
	now := a.now()
	kept, ok := s.answers[q.key()]
	if !ok {
		if s.queued >= maxQueued {
			return nil
		}
		for len(s.answers) >= maxAnswers {
			a.drop(s, oldest(s, nil))
		}
		kept = &answer{question: q, namespace: namespace, tried: make(chan struct{})}
		s.answers[q.key()] = kept
	}
	kept.used = now
	if !kept.fetched && !kept.due.After(now) {
		a.enqueue(s, kept)
	}
	return kept
}

// enqueue puts an answer in line, unless it is or there is no room: then the
// next one to ask tries again.
func (a *Ahead) enqueue(s *shelf, kept *answer) {
	if kept.queued || s.queued >= maxQueued {
		return
	}
	select {
	case a.queue <- kept:
		kept.queued = true
		s.queued++
	default:
	}
}

// renew queues what is old and still used, and drops what is not.
func (a *Ahead) renew() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	for namespace, s := range a.shelves {
		for _, kept := range s.answers {
			switch {
			case now.Sub(kept.used) > forgetAfter:
				a.drop(s, kept)
			case !kept.due.After(now):
				a.enqueue(s, kept)
			}
		}
		if len(s.answers) == 0 && s.queued == 0 {
			delete(a.shelves, namespace)
		}
	}
}

func (a *Ahead) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case kept := <-a.queue:
			content, err := a.fetch(ctx, kept.question)
			a.store(kept, content, err)
		}
	}
}

func (a *Ahead) fetch(ctx context.Context, q question) (content []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, q.method, q.address, strings.NewReader(q.body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	if q.kind != "" {
		request.Header.Set("Content-Type", q.kind)
	}
	response, err := a.client.Do(request)
	if err != nil {
		return nil, errors.New("the responder cannot be reached") // by which addresses is nothing to team devs
	}
	defer func() { _ = response.Body.Close() }() // all of it was read, or it is not wanted
	content, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read answer: %w", err)
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the responder answered with status %d", response.StatusCode)
	case len(content) > maxAnswer:
		return nil, fmt.Errorf("the answer is larger than %d bytes", maxAnswer)
	}
	return content, nil
}

// store keeps an answer. After a failed fetch the last good one stays.
func (a *Ahead) store(kept *answer, content []byte, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	kept.queued = false
	select {
	case <-kept.tried:
	default:
		close(kept.tried)
	}
	s, ok := a.shelves[kept.namespace]
	if !ok {
		return
	}
	if s.queued > 0 {
		s.queued--
	}
	if s.answers[kept.question.key()] != kept {
		return // dropped meanwhile
	}
	now := a.now()
	if err != nil {
		kept.err = err
		kept.due = now.Add(min(firstRetry<<min(kept.failures, 10), lastRetry))
		kept.failures++
		return
	}
	s.bytes += len(content) - len(kept.content)
	a.bytes += len(content) - len(kept.content)
	kept.content, kept.fetched, kept.err, kept.failures = content, true, nil, 0
	// Jitter: what was fetched together is not renewed together.
	kept.due = now.Add(a.refresh - rand.N(a.refresh/10+1)) //nolint:gosec // no secret
	for s.bytes > maxBytes && len(s.answers) > 1 {
		a.drop(s, oldest(s, kept))
	}
	for a.bytes > maxBytesInAll {
		largest := a.largest()
		a.drop(largest, oldest(largest, nil))
	}
}

// drop forgets an answer, which may still be in the queue.
func (a *Ahead) drop(s *shelf, kept *answer) {
	delete(s.answers, kept.question.key())
	s.bytes -= len(kept.content)
	a.bytes -= len(kept.content)
	kept.content, kept.fetched, kept.err = nil, false, errStopped
}

// oldest returns the answer that was used least recently, other than except.
func oldest(s *shelf, except *answer) *answer {
	var found *answer
	for _, kept := range s.answers {
		if kept != except && (found == nil || kept.used.Before(found.used)) {
			found = kept
		}
	}
	return found
}

func (a *Ahead) largest() *shelf {
	var found *shelf
	for _, s := range a.shelves {
		if found == nil || s.bytes > found.bytes {
			found = s
		}
	}
	return found
}
