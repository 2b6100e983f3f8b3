package configdir

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/tenant"
)

// Watch reads dir as [Load] does, and calls apply with what it found, then again
// after every change, until ctx ends. The first reading must succeed, or Watch
// returns its error. Later ones change as little as possible: what cannot be
// understood any more denies where it applied, and all else goes on. apply is
// called from one goroutine at a time.
func Watch(ctx context.Context, dir string, apply func(tenant.Objects, []tenant.Problem)) (err error) {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, events.Close()) }()
	d := &directory{path: dir}
	if _, err := d.read(); err != nil {
		return err
	}
	if err := d.firstError(); err != nil {
		return err
	}
	d.follow(events)
	apply(d.assemble())
	ticker := time.NewTicker(rescan)
	defer ticker.Stop()
	var settled <-chan time.Time
	lost := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-events.Events:
			settled = time.After(settle)
			continue
		case <-events.Errors: // some events were lost
			settled = time.After(settle)
			continue
		case <-settled:
			settled = nil
		case <-ticker.C:
		}
		changed, err := d.read()
		d.follow(events)
		said := ""
		if err != nil {
			said = err.Error()
		}
		if !changed && said == lost {
			continue
		}
		lost = said
		objects, problems := d.assemble()
		if err != nil { // all that was there stays
			problems = append(problems, tenant.Problem{Source: policy.Source{Kind: "Directory", Name: dir}, Reason: "Unreadable", Message: said})
		}
		apply(objects, problems)
	}
}

// follow asks for events of every directory; adding one twice is harmless, and
// one that has just vanished is found by the next scan.
func (d *directory) follow(events *fsnotify.Watcher) {
	_ = events.Add(d.path)
	for _, name := range d.dirs {
		_ = events.Add(filepath.Join(d.path, filepath.FromSlash(name)))
	}
}
