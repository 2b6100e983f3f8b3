package resource

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// Severity is the severity of a finding.
type Severity string

// The severities, the worst first.
const (
	// Error means that images which should be denied may run, that images which should be allowed do
	// not, or that something is refused.
	Error Severity = "error"
	// Warning means that something will break, or is slower or weaker than it should be.
	Warning Severity = "warning"
	// Note deserves a look: the checked data alone does not show whether anything is wrong.
	Note Severity = "note"
)

// Rank orders severities, the worst first.
func (s Severity) Rank() int { return slices.Index([]Severity{Error, Warning, Note}, s) }

// Finding is one problem in a cluster, in files or in a repository.
type Finding struct {
	// ID names the kind of finding. Programs may depend on it.
	ID       string   `json:"id"`
	Severity Severity `json:"severity"`
	// Object is the affected object, the zero value for a whole file.
	Object policy.ObjectRef `json:"object,omitzero"`
	// Tenant is the team that can fix it, "" if none can.
	Tenant string `json:"tenant,omitempty"`
	// File and Line, from 1, are its position; empty and 0 in a cluster.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Field is its path, such as spec.rules[0].images; empty if it is not about a field.
	Field string `json:"field,omitempty"`
	// Message says what is wrong, and Why what the consequence is.
	Message string `json:"message"`
	Why     string `json:"why,omitempty"`
	// Fix says what to do, and Command does it: a line for a POSIX shell. Both are empty if Message
	// says enough.
	Fix     string `json:"fix,omitempty"`
	Command string `json:"command,omitempty"`
	// Keep names the setting without which the next upgrade undoes the command, if there is one.
	Keep string `json:"keep,omitempty"`
	// Docs is the page that explains the ID, if there is one.
	Docs string `json:"docs,omitempty"`
}

// String returns the object, the problem and the consequence in one line, without a position.
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

// Unchecked describes a check that was not possible.
type Unchecked struct {
	// IDs are the findings that the check would look for; they may exist.
	IDs []string `json:"ids"`
	// Missing is the missing permission, such as "list providers.externaldata.gatekeeper.sh", empty
	// for other causes.
	Missing string `json:"missingPermission,omitempty"`
	// Role is the ClusterRole with the permission, as Why says, "" for the chart's role for check.
	Role string `json:"-"`
	// Unpublished means that only the process knows, and has not published it.
	Unpublished bool   `json:"-"`
	Why         string `json:"why"`
}

// ShellWord quotes one word of a [Finding.Command]. A name from the cluster always stays one word
// of ASCII.
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

// ascii escapes other characters, and control characters, as JSON does.
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
