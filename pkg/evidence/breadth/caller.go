package breadth

import (
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/decide/cel"
	"github.com/landwaiter/landwaiter/pkg/evidence/cosign"
)

// calledFrom is the expression to use for a reusable workflow.
const calledFrom = "claims.sourceRepositoryURI == 'https://github.com/OWNER/REPOSITORY' && claims.sourceRepositoryRef == 'refs/heads/main'"

// somebody is the workflow of a stranger.
const somebody = "https://github.com/somebody-else/another-repository/.github/workflows/another.yml@refs/heads/main"

// caller finds who gets in through a reusable workflow: its certificates name the workflow, whoever calls it.
func (j *judge) caller(f form, issuer, subject string) (Stranger, bool) {
	path, ok := strings.CutPrefix(subject, "https://github.com/")
	if !ok {
		return Stranger{}, false
	}
	if !j.acceptsCaller(issuer, subject, somebody) {
		return j.similarCaller(f, issuer, subject)
	}
	if names := strings.SplitN(path, "/", 3); len(names) == 3 && slices.Contains(builders(), names[0]+"/"+names[1]) {
		return Stranger{Anyone, "any repository that calls this workflow", issuer, subject}, true
	}
	return Stranger{Insiders, "any repository that calls this workflow, of anybody if the workflow is public", issuer, subject},
		called.MatchString(subject)
}

// similarCaller finds strangers whose repositories meet an expression about who calls a workflow: other owners.
func (j *judge) similarCaller(f form, issuer, subject string) (Stranger, bool) {
	if j.condition == nil || j.matches(issuer, somebody) { // a stranger's own workflow says more
		return Stranger{}, false
	}
	about := *j.condition
	about.alternatives = nil
	for _, alternative := range j.condition.alternatives {
		about.alternatives = append(about.alternatives, slices.DeleteFunc(slices.Clone(alternative), func(c cel.Comparison) bool {
			return c.Of == "subject" || c.Of == "claims.buildSignerURI" // of the workflow that is called
		}))
	}
	callers := *j
	callers.condition = &about
	callers.identity = cosign.Identity{Issuer: issuer, SubjectRegExp: ".*"}
	callers.subject, callers.meant = printable(), printable()
	callers.accepts = func(issuer, caller string) bool { return about.meets(issuer, subject, caller) }
	callers.at = issuer
	owner := slices.IndexFunc(f.parts, func(p part) bool { return p.name == "owner" })
	pinned, ok := callers.pinned(f, values(f))
	if !ok || owner < 0 {
		return Stranger{}, false
	}
	for _, e := range callers.examples(f, pinned) {
		about.ask(e.alternative, e.subject, j.steps)
		parts := f.partsOf(e)
		for _, name := range append([]string{strange}, similar(parts[owner])...) {
			parts[owner] = name
			if caller := strings.Join(parts, ""); f.valid(caller) && callers.accepts(issuer, caller) {
				return Stranger{Anyone, "another owner, whose workflow " + caller + " calls this one", issuer, subject}, true
			}
		}
	}
	return Stranger{}, false
}
