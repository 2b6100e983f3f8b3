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

	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/resource"
)

// Watch loads dir as [Load] does, and fails as Load does. Then it calls onChange
// with what was read, and again after every change until ctx ends; then it
// returns nil. Calls do not overlap. After the first load, what a file can no
// longer say makes the objects that it gave broken; other files are not
// affected. If dir as a whole cannot be read, the last objects are kept and
// there is a Problem. Files should be replaced by renaming, so that none is read
// half written.
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
	if w.decoder, err = newDecoder(); err != nil {
		return err
	}
	if err := w.begin(); err != nil {
		return err
	}
	w.run(ctx, rescan)
	return nil
}

// watcher knows what was read last.
type watcher struct {
	dir       string
	decoder   *decoder
	events    *fsnotify.Watcher
	onChange  func(resource.Objects, []resource.Problem)
	memory    memory
	digest    [sha256.Size]byte // of the last scan
	last      collection        // what its files say
	told      collection        // what onChange was last called with
	unwatched []error           // directories whose changes are only found by looking again
}

func (w *watcher) begin() error {
	s, err := w.scan()
	if err != nil {
		return err
	}
	if w.last, w.memory, err = first(w.decoder.all(s)); err != nil {
		return err
	}
	w.digest = s.digest()
	w.told = w.current(nil)
	w.onChange(w.told.objects, w.told.problems)
	return nil
}

// run looks again after events, once they pause, and at intervals.
func (w *watcher) run(ctx context.Context, rescan time.Duration) {
	ticker := time.NewTicker(rescan)
	defer ticker.Stop()
	settled := time.NewTimer(rescan)
	settled.Stop()
	defer settled.Stop()
	var since time.Time // the first event that was not yet looked after
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
			w.look()
			continue
		case <-ticker.C:
			w.look()
			continue
		}
		if since.IsZero() {
			since = time.Now()
		}
		settled.Reset(min(debounce, maxDebounce-time.Since(since)))
	}
}

// look reads everything again and tells if anything is different.
func (w *watcher) look() {
	s, err := w.scan()
	if digest := s.digest(); err == nil && digest != w.digest {
		w.last, w.memory = w.memory.collect(w.decoder.all(s))
		w.digest = digest
	}
	now := w.current(err)
	if reflect.DeepEqual(now, w.told) {
		return
	}
	w.told = now
	w.onChange(now.objects, now.problems)
}

// current is what the files said last, and what is wrong with the watch itself.
func (w *watcher) current(err error) collection {
	c := collection{objects: w.last.objects, problems: slices.Clone(w.last.problems)}
	if err != nil {
		c.problem(fileSource(w.dir), policy.ReasonUnreadable, fmt.Sprintf("%v; the resources that were read last stay in force", err))
	}
	for _, err := range w.unwatched {
		c.problem(fileSource(w.dir), policy.ReasonUnwatched, fmt.Sprintf("%v; changes are found every %v only", err, rescan))
	}
	return c
}

// scan reads the directory. Each directory is watched before it is read, so
// that no change falls in between.
func (w *watcher) scan() (scan, error) {
	return scanDir(w.dir, func(path string) {
		if path == "." { // a scan begins, perhaps anew
			w.unwatched = nil
		}
		if err := w.events.Add(filepath.Join(w.dir, path)); err != nil {
			w.unwatched = append(w.unwatched, fmt.Errorf("watch directory %s: %w", path, err))
		}
	})
}
