// Package page shows one person in a browser what the commands print: the state of images, which
// rules decide, the evidence for an image, and the effect of a change. It serves HTML on loopback
// and reads through a [Source], which has the person's permissions. It decides nothing and writes
// nothing: views are pure functions of facts, and GET requests only read.
package page

import (
	"context"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
)

// Source reads the facts of the page with the permissions of one person. Its methods are
// called concurrently, and end with their context.
type Source interface {
	// Status returns the state of images in a namespace, or with [verify.Cluster] in all namespaces.
	// The page shows the missing permission of a [live.MissingError].
	Status(ctx context.Context, namespace verify.Namespace) (live.Status, error)
	// Check returns the findings about the installation.
	Check(ctx context.Context) (Checked, error)
	// Explain verifies an image as the server would for a pod in the namespace.
	Explain(ctx context.Context, namespace verify.Namespace, image string) (Explanation, error)
	// Preview judges running images in the namespace, or with [verify.Cluster] in all namespaces,
	// by the current rules, and as if someone had applied the objects in text.
	Preview(ctx context.Context, namespace verify.Namespace, text string) (Preview, error)
}

// About describes the person and the cluster.
type About struct {
	// Who is the user in the kubeconfig file, and Where the API server or the directory.
	Who, Where string
	// Namespace is the person's namespace, "" if there is none.
	Namespace verify.Namespace
	// Files says that the resources come from files, so that nothing runs.
	Files bool
}

// Checked is the result of check.
type Checked struct {
	Findings []Finding
	// Unchecked lists checks that were not possible, with reasons.
	Unchecked []string
	// Actions are Gatekeeper's actions on violations, by namespace: deny, warn, dryrun or none. It is
	// nil if the person may not read them.
	Actions map[verify.Namespace]string
}

// Finding is one problem.
type Finding struct {
	// ID names the kind of finding, Severity is error, warning or note, and Text is a sentence.
	ID, Severity, Text string
	// Fix says what to do, Command does it in a shell, and Keep is the setting that makes it permanent.
	// Each may be empty.
	Fix, Command, Keep string
	// Down says that no replica answers.
	Down bool
}

// Explanation is the explanation of an image's verdict.
type Explanation struct {
	Result verify.Result
	Took   time.Duration
	// Text is the output of verify --explain, and Notes are its notes.
	Text  string
	Notes []string
}

// Preview is the effect of a change on running images.
type Preview struct {
	Rows   []live.Row
	Totals []live.Total
	// Missing are permissions without which images may be missing, and Notes are notes about the change.
	Missing, Notes []string
}
