package resource

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// Severity says what a finding costs.
type Severity string

// The severities, the worst first.
const (
	// Error means that images which should be denied may run, that images which should be allowed do
	// not, or that something is refused.
	Error Severity = "error"
	// Warning means that it will break, or is slower or weaker than it should be.
	Warning Severity = "warning"
	// Note deserves a look: what was checked does not alone decide whether anything is wrong.
	Note Severity = "note"
)

// Rank orders severities, the worst first.
func (s Severity) Rank() int { return slices.Index([]Severity{Error, Warning, Note}, s) }

// Finding is one thing that is wrong, in a cluster, in files or in a repository.
type Finding struct {
	// ID names the kind of finding. Programs may depend on it.
	ID       string   `json:"id"`
	Severity Severity `json:"severity"`
	// Object is what it is about, the zero value if that is a whole file.
	Object policy.ObjectRef `json:"object,omitzero"`
	// Tenant is the team whose matter it is, if it is one's.
	Tenant string `json:"tenant,omitempty"`
	// File and Line, from 1, are where it was found; empty and 0 in a cluster.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Field is its path, such as spec.rules[0].images; empty if it is not about one.
	Field string `json:"field,omitempty"`
	// Message says what is wrong, Why what it leads to.
	Message string `json:"message"`
	Why     string `json:"why,omitempty"`
	// Fix says what to do, Command does it: a line for a POSIX shell. Both are empty if Message says
	// enough.
	Fix     string `json:"fix,omitempty"`
	Command string `json:"command,omitempty"`
	// Keep names the setting without which the next upgrade undoes the command, if there is one.
	Keep string `json:"keep,omitempty"`
	// Docs is where a page explains the ID, if one does.
	Docs string `json:"docs,omitempty"`
}

// String returns what is wrong with what, and why that matters, in one line without where it is.
func (f Finding) String() string {
	var parts []string
	switch {
	case f.Object != policy.ObjectRef{}:
		parts = append(parts, f.Object.String())
	case f.Tenant != "":
		parts = append(parts, "Tenant "+f.Tenant)
	}
	for _, part := range []string{f.Field, f.Message, f.Why} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// Remedy returns what to do in words, or else the command.
func (f Finding) Remedy() string { return cmp.Or(f.Fix, f.Command) }

// Remedied returns f in one sentence, with what to do.
func (f Finding) Remedied() string {
	if f.Remedy() == "" {
		return f.String()
	}
	return f.String() + "; " + f.Remedy()
}

// Unchecked names what could not be checked.
type Unchecked struct {
	// IDs are the findings that were not looked for; they may exist all the same.
	IDs []string `json:"ids"`
	// Missing is the permission that is missing, such as "list providers.externaldata.gatekeeper.sh",
	// empty if it is not about a permission.
	Missing string `json:"missingPermission,omitempty"`
	// Role is the ClusterRole that has the permission, as Why says, "" for the one of the chart for check.
	Role string `json:"-"`
	// Unpublished means that only the process knows, and has not said.
	Unpublished bool   `json:"-"`
	Why         string `json:"why"`
}

// ShellWord quotes one word of a [Finding.Command]. A name that came from the cluster is never more
// than a word, and never shows anything but ASCII.
func ShellWord(s string) string {
	special := strings.IndexFunc(s, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune("-_./:@=,", r)
	}) >= 0
	if s != "" && s[0] != '-' && !special {
		return s
	}
	return "'" + strings.ReplaceAll(ascii(s), "'", `'\''`) + "'"
}

// ascii writes other characters, and those that control a terminal, as JSON has them.
func ascii(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r >= ' ' && r < 0x7f {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}
