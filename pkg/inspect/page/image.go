package page

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
)

// imageModel is the view of one image in one namespace.
type imageModel struct {
	Namespace, NamespaceHref, Image, WhatIf string

	Running []runningRow
	Denied  []denialRow
	// Explained is nil until the image has been verified.
	Explained *explained
}

// explained is the explanation of an image's verdict.
type explained struct {
	Verdict, Digest, Policy, Exception string
	Reason, Warning                    long
	Fix                                remedy
	Others                             []blocking
	More                               int // not in Others
	Places                             []place
	Evidence                           []evidence
	Absent                             []saying // findings without a piece of evidence
	Stages                             timeline
	Text                               string
	Notes                              []string
	// FromMemory says that the verdict was cached, so that no evidence was looked for.
	FromMemory bool
}

// blocking is a further policy that denies the image, or a further requirement.
type blocking struct {
	Reason long
	Fix    remedy
}

// place is a repository that was searched for evidence.
type place struct{ Repository, Role, Held, Err string }

// evidence is one manifest that refers to the image, with the findings of Verifiers.
type evidence struct {
	Digest, Kind string
	// Place is its repository, "" if several may have it.
	Place string
	Said  []saying
}

// saying is the finding of one Verifier.
type saying struct {
	By, Result, Signer string
	Message            long
	Fix                remedy
	Facts              []factRow
}

type factRow struct{ Name, Value string }

// explainedOf builds the tree of evidence, and the timings.
func explainedOf(x Explanation) *explained {
	r := x.Result
	v := r.Verdict
	m := &explained{Verdict: wordOf(r), Digest: r.Digest.String(), Policy: v.Policy.String(), Reason: folded(v.Reason),
		Warning: folded(v.Warning), Fix: remedyOf(v.Objections()[0]), More: v.More,
		Text: policy.Cut(x.Text, maxText), Notes: x.Notes, FromMemory: r.Cached, Stages: timelineOf(r.Stages, x.Took)}
	if r.Exception != (policy.ObjectRef{}) {
		m.Exception = fmt.Sprintf("%s until %s", r.Exception, r.ExceptionEnds.UTC().Format(time.RFC3339))
	}
	for _, d := range v.Others {
		m.Others = append(m.Others, blocking{folded(d.Reason), remedyOf(d)})
	}
	holding := map[string]bool{}
	for _, l := range r.Looked {
		others := l.Manifests - l.Signatures
		m.Places = append(m.Places,
			place{l.Repository, string(l.Role), fmt.Sprintf("%d to check, %d of another kind", l.Signatures, others), l.Err})
		if l.Manifests > 0 || l.Err != "" {
			holding[l.Repository] = true
		}
	}
	at := map[string]int{}
	for _, f := range r.Findings {
		if f.Digest == "" {
			m.Absent = append(m.Absent, sayingOf(f))
			continue
		}
		i, ok := at[f.Digest]
		if !ok {
			i = len(m.Evidence)
			at[f.Digest] = i
			m.Evidence = append(m.Evidence, evidence{Digest: f.Digest, Kind: cmp.Or(f.ArtifactType, "unknown kind")})
			if len(holding) == 1 {
				for name := range holding {
					m.Evidence[i].Place = name
				}
			}
		}
		m.Evidence[i].Said = append(m.Evidence[i].Said, sayingOf(f))
	}
	return m
}

// wordOf returns the verdict on an image as the page names it.
func wordOf(r verify.Result) string {
	if answer := r.Answer(); answer != verify.AnswerUnverified {
		return string(answer)
	}
	return verdictUnverified
}

func sayingOf(f policy.Finding) saying {
	by := f.Source.String()
	if f.Source == (policy.ObjectRef{}) {
		by = f.Verifier + " (does not apply)"
	}
	s := saying{By: by, Result: f.Result().String(), Signer: f.Signer(), Message: folded(f.Message),
		Fix: remedy{Advice: f.Remediation, Command: f.Command}}
	facts, _ := f.Facts()["facts"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		if len(s.Facts) < maxFacts {
			s.Facts = append(s.Facts, factRow{name, policy.Cut(valueOf(facts[name]), shortText)})
		}
	}
	return s
}

// valueOf returns a fact as text.
func valueOf(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}

// timeline is a picture of a verification's stages.
type timeline struct {
	Width, Height int
	Total         string
	Stages        []stageBarRow
}

type stageBarRow struct {
	Y, TextY, X, Width int
	Name, Took, Detail string
}

const (
	timelineLabel = 130
	timelineWidth = 420
	timelineRow   = 22
)

// timelineOf draws the stages from the start of the first to the end of the last.
func timelineOf(stages []verify.Stage, took time.Duration) timeline {
	t := timeline{Width: timelineLabel + timelineWidth, Total: rounded(took)}
	if len(stages) == 0 {
		return t
	}
	first, last := stages[0].Began, stages[0].Began
	for _, s := range stages {
		if s.Began.Before(first) {
			first = s.Began
		}
		if end := s.Began.Add(s.Duration); end.After(last) {
			last = end
		}
	}
	whole := max(last.Sub(first), time.Nanosecond)
	sorted := slices.Clone(stages)
	slices.SortStableFunc(sorted, func(a, b verify.Stage) int { return a.Began.Compare(b.Began) })
	for i, s := range sorted[:min(len(sorted), rowsOfPage)] {
		x := int(int64(timelineWidth) * int64(s.Began.Sub(first)) / int64(whole))
		width := int(int64(timelineWidth) * int64(s.Duration) / int64(whole))
		detail := s.Detail
		if s.Verifier != (policy.ObjectRef{}) {
			detail = s.Verifier.String() + " " + detail
		}
		t.Stages = append(t.Stages,
			stageBarRow{Y: i*timelineRow + 4, TextY: i*timelineRow + 16, X: timelineLabel + min(x, timelineWidth-2),
				Width: max(min(width, timelineWidth-x), 2),
				Name:  s.Name, Took: rounded(s.Duration), Detail: policy.Cut(detail, shortText)})
	}
	t.Height = len(t.Stages) * timelineRow
	return t
}

// rounded returns a time in a suitable unit, in microseconds below a second: a cached verdict takes
// less than a millisecond.
func rounded(took time.Duration) string {
	if took < time.Second {
		return took.Round(time.Microsecond).String()
	}
	return took.Round(time.Millisecond).String()
}

// imageView answers the address of an image.
func (s *Site) imageView(r *http.Request) view {
	query := r.URL.Query()
	name, image := query.Get("namespace"), query.Get("image")
	b := s.base(r, "Image")
	namespace, err := verify.ParseNamespace(name)
	if err != nil || image == "" || len(image) > maxImage {
		b.Live = false
		return view{template: "fail.html", status: http.StatusNotFound, base: b, model: "The address names no image in a namespace."}
	}
	m := imageModel{Namespace: name, NamespaceHref: namespaceHref(namespace), Image: image,
		WhatIf: pathWhatIf + "?" + url.Values{"namespace": {name}}.Encode()}
	explaining := s.explain.of(name+" "+image).get(r.Context(), patience/5)
	if explaining.Known {
		m.Explained = explainedOf(explaining.Value)
	} else if explaining.Err == nil {
		b.Pending = true
	}
	status := s.statusOf(r, namespace)
	for _, n := range status.Value.Namespaces {
		if n.Namespace == namespace {
			m.add(n)
		}
	}
	b.AsOf, b.Trouble = asOf(explaining.At), troubleOf(status)
	if explaining.Err != nil {
		b.Trouble = append(b.Trouble, "the image could not be verified: "+said(explaining.Err))
	}
	return view{template: "image.html", base: b, model: m}
}

// add adds what reports contain about the image.
func (m *imageModel) add(n live.NamespaceStatus) {
	same := func(name string) bool { return name == m.Image || live.Normalised(name) == live.Normalised(m.Image) }
	for _, row := range runningRows(n) {
		if same(row.Image) {
			m.Running = append(m.Running, row)
		}
	}
	for _, row := range denialRows(n) {
		if same(row.Image) {
			m.Denied = append(m.Denied, row)
		}
	}
	m.Running = m.Running[:min(len(m.Running), rowsOfPage)]
}
