package configdir

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Watch loads dir as [Load] does, and fails as Load does. Then it calls onChange with the
// objects and problems, and again after every change, until ctx ends; then it returns nil.
// Calls do not overlap. If a file becomes unreadable after the first load, the objects that
// it declared become broken; other files are not affected. If dir itself cannot be read,
// Watch keeps the last objects and reports a Problem. Replace files by renaming, so that
// Watch never reads a half-written file.
func Watch(ctx context.Context, dir string, onChange func(resource.Objects, []resource.Problem)) error {
	return watch(ctx, dir, rescan, onChange)
}

func watch(ctx context.Context, dir string, rescan time.Duration, onChange func(resource.Objects, []resource.Problem)) error {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch %s: %w", dir, err)
	}
	defer func() { _ = events.Close() }()
	w := &watcher{dir: dir, events: events, onChange: onChange}
	if w.decoder, err = newDecoder(false); err != nil {
		return err
	}
	if err := w.begin(ctx); err != nil {
		return err
	}
	w.run(ctx, rescan)
	return nil
}

// watcher holds the result of the last scan.
type watcher struct {
	dir       string
	decoder   *decoder
	events    *fsnotify.Watcher
	onChange  func(resource.Objects, []resource.Problem)
	index     fileIndex
	digest    [sha256.Size]byte // of the last scan
	last      collection        // content of the last scan
	published collection        // last arguments of onChange
	unwatched []error           // directories whose changes only a rescan detects
}

func (w *watcher) begin(ctx context.Context) error {
	s, err := w.scan()
	if err != nil {
		return err
	}
	if w.last, w.index, err = initial(w.decoder.decodeAll(ctx, s)); err != nil {
		return err
	}
	w.digest = s.digest()
	w.published = w.current(nil)
	w.onChange(w.published.objects, w.published.problems)
	return nil
}

// run reloads at intervals, and after events once they pause.
func (w *watcher) run(ctx context.Context, rescan time.Duration) {
	ticker := time.NewTicker(rescan)
	defer ticker.Stop()
	settled := time.NewTimer(rescan)
	settled.Stop()
	defer settled.Stop()
	var since time.Time // first event since the last reload
	var rest time.Time  // until then no event causes a reload
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-w.events.Errors: // events may have been lost
			if !open {
				return
			}
		case <-w.events.Events:
		case <-settled.C:
			since = time.Time{}
			began := time.Now()
			w.reload(ctx)
			rest = time.Now().Add(restParts * time.Since(began))
			continue
		case <-ticker.C:
			w.reload(ctx)
			continue
		}
		if since.IsZero() {
			since = time.Now()
		}
		settled.Reset(max(min(debounce, maxDebounce-time.Since(since)), time.Until(rest)))
	}
}

// reload reads the directory and calls onChange if anything changed.
func (w *watcher) reload(ctx context.Context) {
	s, err := w.scan()
	if digest := s.digest(); err == nil && digest != w.digest {
		w.last, w.index = w.index.collect(w.decoder.decodeAll(ctx, s))
		w.digest = digest
	}
	now := w.current(err)
	if reflect.DeepEqual(now, w.published) {
		return
	}
	w.published = now
	w.onChange(now.objects, now.problems)
}

// current returns the last collection plus problems of the watch itself.
func (w *watcher) current(err error) collection {
	c := collection{objects: w.last.objects, problems: slices.Clone(w.last.problems)}
	if err != nil {
		c.problem(fileRef(w.dir), policy.ReasonUnreadable, fmt.Sprintf("%v; the last resources read stay in force", err))
	}
	for _, err := range w.unwatched {
		c.problem(fileRef(w.dir), policy.ReasonUnwatched, fmt.Sprintf("%v; changes are only detected every %v", err, rescan))
	}
	return c
}

// scan reads the directory. It watches each directory before reading it, so that
// no change is missed.
func (w *watcher) scan() (scan, error) {
	return scanDir(w.dir, func(path string) {
		if path == "." { // a scan or a retry begins
			w.unwatched = nil
		}
		if err := w.events.Add(filepath.Join(w.dir, path)); err != nil {
			w.unwatched = append(w.unwatched, fmt.Errorf("watch directory %s: %w", path, err))
		}
	})
}
