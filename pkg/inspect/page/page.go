// Package page shows one person in a browser what the commands print: how images fare, which rules
// decide, what was found about an image, and what a change would do. It serves HTML on loopback
// and reads through a [Source], which has the person's permissions. It decides nothing and writes
// nothing: views are pure functions of facts, and GET requests only read.
package page

import (
	"context"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
)

// Source reads what the page shows, with the permissions of one person. Its methods are called
// concurrently, and end with their context.
type Source interface {
	// Status returns how images fare in a namespace, or with [verify.Cluster] in all namespaces. The
	// page names the permission of a [live.MissingError].
	Status(ctx context.Context, namespace verify.Namespace) (live.Status, error)
	// Check returns what is wrong with the installation.
	Check(ctx context.Context) (Checked, error)
	// Explain verifies an image as the server would for a pod in the namespace.
	Explain(ctx context.Context, namespace verify.Namespace, image string) (Explanation, error)
	// Preview judges what runs in the namespace, or with [verify.Cluster] in all namespaces, by the
	// rules as they are, and as if someone had applied the objects in text.
	Preview(ctx context.Context, namespace verify.Namespace, text string) (Preview, error)
}

// About says whose page it is.
type About struct {
	// Who is the user as far as the kubeconfig file says, and Where the API server or the directory.
	Who, Where string
	// Namespace is the person's own, "" if the person has none.
	Namespace verify.Namespace
	// Files says that the resources come from files, so that nothing runs.
	Files bool
}

// Checked is what check finds.
type Checked struct {
	Findings []Finding
	// Unchecked says what could not be checked, and why.
	Unchecked []string
	// Actions are what Gatekeeper does about violations, by namespace: deny, warn, dryrun or none. It is
	// nil if the person may not read that.
	Actions map[verify.Namespace]string
}

// Finding is one thing that is wrong.
type Finding struct {
	// ID names the kind of finding, Severity is error, warning or note, and Text is a sentence.
	ID, Severity, Text string
	// Fix says what to do, Command does it in a shell, and Keep is the setting that keeps it so. Each may
	// be empty.
	Fix, Command, Keep string
	// Down says that no replica answers.
	Down bool
}

// Explanation is how an image is decided.
type Explanation struct {
	Result verify.Result
	Took   time.Duration
	// Text is what verify --explain prints, and Notes are what it says besides.
	Text  string
	Notes []string
}

// Preview is what a change would do to what runs.
type Preview struct {
	Rows   []live.Row
	Totals []live.Total
	// Missing are permissions without which there may be more images, and Notes say what a reader should
	// know of the change.
	Missing, Notes []string
}
