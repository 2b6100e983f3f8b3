package page

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
)

// whatIfModel is the form of a what-if, and its answer. Namespace is "" for all namespaces.
type whatIfModel struct {
	Namespace, NamespaceHref, Text string
	// Usable says that there is something to preview: with files, nothing runs.
	Usable   bool
	Answered bool
	Trouble  string
	Rows     []changeRow
	More     int // rows that are not shown
	Totals   []totalRow
	Others   int // namespaces whose totals are not shown
	Images   int // that run
	Breaks   int
	Unknown  int
	Missing  []string
	Losses   []live.Loss // rules that would no longer judge images
	Losing   int         // more such rules
	Notes    []string
}

// changeRow is one image with its current and its previewed verdict.
type changeRow struct {
	Namespace, Image, Href, Now, Then string
	Why                               long
	Breaks                            bool
}

// Partial says that the known data is incomplete.
func (m whatIfModel) Partial() bool { return m.Unknown > 0 || len(m.Missing) > 0 }

type totalRow struct {
	Namespace              string
	Images, Breaks         int
	Allowed, Warned        [2]int
	Denied, UnknownVerdict [2]int
}

// answer adds the effects of a change, breakages first. It omits rows without changes.
func (m *whatIfModel) answer(p Preview) {
	m.Answered, m.Missing, m.Notes = true, slices.Compact(slices.Sorted(slices.Values(p.Missing))), p.Notes
	rows, totals := slices.Clone(p.Rows), slices.Clone(p.Totals)
	m.Losses, m.Losing = live.Losses(rows)
	slices.SortStableFunc(rows, func(a, b live.Row) int { return cmp.Compare(urgency(a), urgency(b)) })
	slices.SortStableFunc(totals, func(a, b live.Total) int { return cmp.Compare(b.Breaks, a.Breaks) })
	for _, row := range rows {
		if row.Breaks() {
			m.Breaks++
		}
		if row.Unknown() {
			m.Unknown++
		}
		switch {
		case !row.Shows():
		case len(m.Rows) == rowsOfPage:
			m.More++
		default:
			m.Rows = append(m.Rows, changeRow{Namespace: string(row.Namespace), Image: row.Image, Href: imageHref(row.Namespace, row.Image),
				Now: string(row.From()), Then: string(row.To()), Why: folded(whyOf(row.After)), Breaks: row.Breaks()})
		}
	}
	for _, t := range totals {
		m.Images += t.Images
		if len(m.Totals) == rowsOfPage {
			m.Others++
			continue
		}
		both := func(a verify.Answer) [2]int { return [2]int{t.Before[a], t.After[a]} }
		m.Totals = append(m.Totals,
			totalRow{Namespace: string(t.Namespace), Images: t.Images, Breaks: t.Breaks, Allowed: both(verify.AnswerAllowed),
				Warned: both(verify.AnswerWarned),
				Denied: both(verify.AnswerDenied), UnknownVerdict: both(live.Unknown)})
	}
}

// urgency orders rows: those that need action first.
func urgency(r live.Row) int {
	switch {
	case r.Breaks():
		return 0
	case r.Unknown():
		return 1
	}
	return 2
}

// whyOf returns the reason of a verdict and its fix.
func whyOf(r verify.Result) string {
	v := r.Verdict
	if v.Warning != "" {
		v.Reason = v.Warning
	}
	return v.Text()
}

// whatIfView answers the form: GET shows it, and POST previews the pasted objects. Neither
// writes.
func (s *Site) whatIfView(w http.ResponseWriter, r *http.Request) view {
	b := s.base(r, "What if")
	b.Live = false
	query := r.URL.Query()
	m := whatIfModel{Namespace: clip(query.Get("namespace")), Usable: !s.Files}
	v := view{template: "whatif.html", base: b}
	if name := clip(query.Get("deny")); name != "" && r.Method != http.MethodPost {
		m.Text, m.Trouble = s.denying(r, m.Namespace, name)
	}
	if r.Method == http.MethodPost {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if err := r.ParseForm(); err != nil {
			v.status, m.Trouble = http.StatusBadRequest, "the form is too large or cannot be read: a what-if has at most 256 KiB"
		} else {
			// browsers send both
			m.Namespace, m.Text = strings.TrimSpace(clip(r.PostForm.Get("namespace"))), strings.ReplaceAll(r.PostForm.Get("text"), "\r\n", "\n")
			v.base.Path = pathWhatIf + "?" + url.Values{"namespace": {m.Namespace}}.Encode()
			v.status, m.Trouble = s.preview(r.Context(), &m)
		}
	}
	if m.Namespace != "" {
		m.NamespaceHref = namespaceHref(verify.Namespace(m.Namespace))
	}
	v.model = m
	return v
}

// preview answers a what-if, or returns why it cannot.
func (s *Site) preview(ctx context.Context, m *whatIfModel) (status int, trouble string) {
	namespace, err := verify.Cluster, error(nil)
	if m.Namespace != "" {
		namespace, err = verify.ParseNamespace(m.Namespace)
	}
	switch {
	case err != nil:
		return http.StatusBadRequest, "enter the name of a namespace, or nothing for all: " + err.Error()
	case !m.Usable:
		return http.StatusBadRequest, "files have no running images to preview"
	case strings.TrimSpace(m.Text) == "":
		return http.StatusBadRequest, "paste one or more objects as YAML or JSON"
	case len(m.Text) > maxPaste:
		m.Text = ""
		return http.StatusRequestEntityTooLarge, "a what-if has at most 256 KiB"
	}
	select {
	case s.whatIf <- struct{}{}:
		defer func() { <-s.whatIf }()
	default:
		return http.StatusServiceUnavailable, "another what-if is being answered; try again when it ends"
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	p, err := s.source.Preview(ctx, namespace, m.Text)
	var missing live.MissingError
	switch {
	case namespace == verify.Cluster && errors.As(err, &missing):
		return http.StatusUnprocessableEntity, "enter one namespace, because you cannot list all: " + missing.Error()
	case err != nil:
		return http.StatusUnprocessableEntity, said(err)
	}
	m.answer(p)
	return 0, ""
}

// denying returns a namespace's policy that only warns, changed to deny, or why that is not
// possible.
func (s *Site) denying(r *http.Request, name, policy string) (text, trouble string) {
	namespace, err := verify.ParseNamespace(name)
	if err != nil {
		return "", "the address names no namespace, so its policy is not shown"
	}
	status := s.statusOf(r, namespace)
	if !status.Known {
		return "", "the policies are not read yet; reload this view"
	}
	for _, n := range status.Value.Namespaces {
		for _, l := range n.Levels {
			for _, p := range l.Resources {
				if n.Namespace == namespace && p.Ref.String() == policy && p.Policy != nil && p.Warns {
					return enforced(p.Policy)
				}
			}
		}
	}
	return "", "no policy of this name warns in namespace " + name + ", or you cannot read it"
}

// enforced returns a policy as YAML that denies, without the fields that the API server adds.
func enforced(from v1beta1.Object) (text, trouble string) {
	applied := map[string]any{"apiVersion": v1beta1.GroupVersion.String(), "metadata": map[string]string{"name": from.GetName()}}
	if from.GetNamespace() != "" {
		applied["metadata"] = map[string]string{"name": from.GetName(), "namespace": from.GetNamespace()}
	}
	switch p := from.(type) {
	case *v1beta1.VerificationPolicy:
		spec := p.Spec
		spec.EnforcementAction = v1beta1.EnforcementActionDeny
		applied["kind"], applied["spec"] = v1beta1.KindVerificationPolicy, spec
	case *v1beta1.ClusterVerificationPolicy:
		spec := p.Spec
		spec.EnforcementAction = v1beta1.EnforcementActionDeny
		applied["kind"], applied["spec"] = v1beta1.KindClusterVerificationPolicy, spec
	}
	made, err := yaml.Marshal(applied)
	if err != nil || len(made) > maxPaste {
		return "", "the policy cannot be shown: it is too large"
	}
	return string(made), ""
}
