package library

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/stretchr/testify/require"
)

const (
	artifactDigest = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	artifact       = "r.example.com/team-a/manifests@" + artifactDigest
	artifactKey    = "[team-a]" + artifact
)

// fluxReview is the admission review of a new object of Flux.
func fluxReview(kind string, spec any) object {
	input := kindReview(kind, "team-a", object{"metadata": object{"name": "app"}, "spec": spec})
	input["review"].(object)["name"] = "app" //nolint:forcetypeassert // kindReview made it
	return input
}

// repository is the spec of an OCIRepository, with fields replaced; nil removes one.
func repository(fields object) object {
	spec := object{"interval": "10m", "url": "oci://r.example.com/team-a/manifests", "ref": object{"digest": artifactDigest}}
	for name, value := range fields {
		if spec[name] = value; value == nil {
			delete(spec, name)
		}
	}
	return spec
}

// artifactScenarios are all cases of the template.
func artifactScenarios() []scenario {
	return slices.Concat(artifactAnswers(), artifactForms(), artifactUsers(), artifactRequests())
}

// artifactAnswers are those that verified-images gets, about an artifact.
func artifactAnswers() []scenario {
	const denied = "OCIRepository team-a/app: artifact " + artifact + " is denied in namespace team-a: "
	const traced = "OCIRepository team-a/app: artifact " + artifact + " is denied in namespace team-a (traceID 4711): nobody signed it$"
	const undecided = "undecided: OCIRepository team-a/app: artifact " + artifact + " could not be decided"
	const unclear = undecided + " in namespace team-a: the provider gave no answer that could be understood"
	good, refused := []any{artifactKey, object{"isSuccess": true}}, []any{artifactKey, object{"isSuccess": false, "reason": "nobody signed it", "traceID": "4711"}}
	list := func(items ...any) []any { return items }
	none := []any{}
	cases := map[string]struct {
		answer any
		want   string
	}{
		"success":       {answers(list(good), none, ""), ""},
		"success twice": {answers(list(good, good), none, ""), ""},
		"refused":       {answers(list(refused), none, ""), traced},
		"refused without a traceID": {answers(list([]any{artifactKey, object{"isSuccess": false, "reason": "nobody signed it"}}), none, ""),
			denied + "nobody signed it$"},
		"refused without a reason":         {answers(list([]any{artifactKey, object{"isSuccess": false}}), none, ""), unclear},
		"refused with a number for reason": {answers(list([]any{artifactKey, object{"isSuccess": false, "reason": 7}}), none, ""), unclear},
		"no answer":                        {answers(none, none, ""), unclear},
		"an answer for another":            {answers(list([]any{"[team-b]" + artifact, object{"isSuccess": true}}), none, ""), unclear},
		"an answer for another as well":    {answers(list(good, []any{"[team-a]r/other", object{"isSuccess": true}}), none, ""), unclear},
		"the untagged key":                 {answers(list([]any{artifact, object{"isSuccess": true}}), none, ""), unclear},
		"a text that says true":            {answers(list([]any{artifactKey, object{"isSuccess": "true"}}), none, ""), unclear},
		"a number":                         {answers(list([]any{artifactKey, object{"isSuccess": 1}}), none, ""), unclear},
		"null":                             {answers(list([]any{artifactKey, nil}), none, ""), unclear},
		"plain true":                       {answers(list([]any{artifactKey, true}), none, ""), unclear},
		"no isSuccess":                     {answers(list([]any{artifactKey, object{"succeeded": true}}), none, ""), unclear},
		"an error":                         {answers(none, list([]any{artifactKey, "not found (traceID 4711)"}), ""), denied + "not found (traceID 4711)$"},
		"an error that is no text":         {answers(none, list([]any{artifactKey, nil}), ""), unclear},
		"a success and an error":           {answers(list(good), list([]any{artifactKey, "not found"}), ""), denied + "not found"},
		"a success and a refusal":          {answers(list(good, refused), none, ""), traced},
		"a success and a bare key":         {answers(list(good, []any{artifactKey}), none, ""), unclear},
		"a success and null":               {answers(list(good, nil), none, ""), unclear},
		"errors of null":                   {object{"responses": list(good), "errors": nil, "system_error": ""}, unclear},
		"no system error":                  {object{"responses": list(good), "errors": none}, unclear},
		"a system error": {answers(none, none, "the registry is slow"),
			undecided + " in namespace team-a: Gatekeeper got no answer from Landwaiter: the registry is slow; try again$"},
		"a system error with a success": {answers(list(good), none, "the registry is slow"),
			undecided + " in namespace team-a: Gatekeeper got no answer from Landwaiter: the registry is slow; try again$"},
		"a system error of ours": {
			answers(none, none, "undecided: image x could not be decided in namespace team-a: the registry is slow; try again (traceID 4711)"),
			"undecided: OCIRepository team-a/app: image x could not be decided in namespace team-a: the registry is slow; try again (traceID 4711)$"},
		"a system error that is no text": {answers(list(good), none, object{"a": 1}),
			undecided + " in namespace team-a: Gatekeeper got no answer from Landwaiter: "},
		"a system error of null":       {answers(list(good), none, nil), undecided + " in namespace team-a: Gatekeeper got no answer from Landwaiter: "},
		"nothing at all":               {object{}, unclear},
		"no object":                    {"garbage", unclear},
		"responses that are an object": {object{"responses": object{"0": good}, "errors": none, "system_error": ""}, unclear},
	}
	all := []scenario{{name: "answer: the call fails", input: fluxReview("OCIRepository", repository(nil)), asked: []string{artifactKey}, want: []string{unclear}}}
	for name, c := range cases {
		s := scenario{name: "answer: " + name, input: fluxReview("OCIRepository", repository(nil)), answer: says(c.answer), asked: []string{artifactKey}}
		if c.want != "" {
			s.want = []string{c.want}
		}
		all = append(all, s)
	}
	return all
}

// artifactForms are sources; what has no digest is denied unasked.
func artifactForms() []scenario {
	const digest, url = "so what Flux fetches may change after it was verified", "which has no one reading"
	missing := "spec.ref.digest is missing, " + digest
	var all []scenario
	for name, c := range map[string]struct {
		spec any
		want []string
	}{
		"only a tag":                     {repository(object{"ref": object{"tag": "v1"}}), []string{missing}},
		"only a range of versions":       {repository(object{"ref": object{"semver": ">=1.0.0"}}), []string{missing}},
		"no reference":                   {repository(object{"ref": nil}), []string{missing}},
		"reference of null":              {object{"url": "oci://r.example.com/a", "ref": nil}, []string{missing}},
		"digest of null":                 {repository(object{"ref": object{"digest": nil}}), []string{missing}},
		"digest that is a number":        {repository(object{"ref": object{"digest": 7}}), []string{missing}},
		"digest without an algorithm":    {repository(object{"ref": object{"digest": artifactDigest[7:]}}), []string{digest}},
		"digest that is too short":       {repository(object{"ref": object{"digest": artifactDigest[:70]}}), []string{digest}},
		"digest of sha1":                 {repository(object{"ref": object{"digest": "sha1:a94a8fe5ccb19ba61c4c0873d391e987982fbbd3"}}), []string{digest}},
		"digest in capitals":             {repository(object{"ref": object{"digest": "sha256:" + strings.ToUpper(artifactDigest[7:])}}), []string{digest}},
		"digest that goes on":            {repository(object{"ref": object{"digest": artifactDigest + "\nx"}}), []string{digest}},
		"a tag in the URL":               {repository(object{"url": "oci://r.example.com/app:v1"}), []string{url}},
		"a digest in the URL":            {repository(object{"url": "oci://r.example.com/app@" + artifactDigest}), []string{url}},
		"a namespace in the URL":         {repository(object{"url": "oci://[team-b]r.example.com/app"}), []string{url}},
		"a short name":                   {repository(object{"url": "oci://library/app"}), []string{url}},
		"a host alone":                   {repository(object{"url": "oci://r.example.com"}), []string{url}},
		"dots in the path":               {repository(object{"url": "oci://r.example.com/team-a/../team-b/app"}), []string{url}},
		"capitals":                       {repository(object{"url": "oci://R.example.com/app"}), []string{url}},
		"a user":                         {repository(object{"url": "oci://r.example.com@evil.io/app"}), []string{url}},
		"a long URL":                     {repository(object{"url": "oci://r.example.com/" + strings.Repeat("a", 500)}), []string{url}},
		"another scheme":                 {repository(object{"url": "https://r.example.com/app"}), []string{url}},
		"URL of null":                    {object{"url": nil, "ref": object{"digest": artifactDigest}}, []string{"spec.url is missing"}},
		"no URL":                         {repository(object{"url": nil}), []string{"spec.url is missing"}},
		"neither URL nor digest":         {object{}, []string{missing, "spec.url is missing"}},
		"no spec":                        {nil, []string{missing, "spec.url is missing"}},
		"spec that is a text":            {"garbage", []string{missing, "spec.url is missing"}},
		"a line break in the digest":     {repository(object{"ref": object{"digest": "sha256:\nallowed"}}), []string{`spec.ref.digest is "sha256:\nallowed"`}},
		"a URL that says nothing useful": {repository(object{"url": "oci://"}), []string{url}},
	} {
		all = append(all, scenario{name: "form: " + name, input: fluxReview("OCIRepository", c.spec), answer: passing, want: c.want})
	}
	for _, kind := range []string{"GitRepository", "HelmRepository", "HelmChart", "Bucket", "ExternalArtifact", "Deployment"} {
		all = append(all,
			scenario{name: "form: " + kind, input: fluxReview(kind, repository(nil)), answer: passing,
				want: []string{kind + " team-a/app: this kind cannot be bound to a digest that Landwaiter verifies"}})
	}
	for _, where := range []string{"127.0.0.1:5000/app", "localhost:5000/a/b_c", "r.example.com:443/a--b", "ghcr.io/fluxcd/manifests"} {
		all = append(all, scenario{name: "form: " + where, input: fluxReview("OCIRepository", repository(object{"url": "oci://" + where})), answer: passing,
			asked: []string{"[team-a]" + where + "@" + artifactDigest}})
	}
	return append(all,
		scenario{name: "form: a digest beside a tag", input: fluxReview("OCIRepository", repository(object{"ref": object{"digest": artifactDigest, "tag": "v1"}})),
			answer: passing, asked: []string{artifactKey}},
		scenario{name: "form: no kind", input: object{"review": object{"namespace": "team-a", "operation": "CREATE", "object": object{"spec": repository(nil)}}},
			answer: passing, want: []string{"this kind cannot be bound"}})
}

// artifactUsers use a source; only an OCIRepository of their own namespace will do.
func artifactUsers() []scenario {
	const none, chart, other = "names no OCIRepository", "spec.chart cannot be bound to a digest", "names another namespace"
	var all []scenario
	for kind, field := range map[string]string{"HelmRelease": "chartRef", "Kustomization": "sourceRef"} {
		for name, c := range map[string]struct {
			spec any
			want []string
		}{
			"an OCIRepository":                    {object{field: object{"kind": "OCIRepository", "name": "app"}}, nil},
			"an OCIRepository of the namespace":   {object{field: object{"kind": "OCIRepository", "name": "app", "namespace": "team-a"}}, nil},
			"an OCIRepository of Flux's group":    {object{field: object{"kind": "OCIRepository", "name": "app", "apiVersion": "source.toolkit.fluxcd.io/v1"}}, nil},
			"a namespace of null":                 {object{field: object{"kind": "OCIRepository", "name": "app", "namespace": nil}}, nil},
			"an OCIRepository of another group":   {object{field: object{"kind": "OCIRepository", "name": "app", "apiVersion": "evil.io/v1"}}, []string{none}},
			"an OCIRepository of another team":    {object{field: object{"kind": "OCIRepository", "name": "app", "namespace": "team-b"}}, []string{other}},
			"a HelmChart":                         {object{field: object{"kind": "HelmChart", "name": "app"}}, []string{none}},
			"a GitRepository":                     {object{field: object{"kind": "GitRepository", "name": "app"}}, []string{none}},
			"an ExternalArtifact of another team": {object{field: object{"kind": "ExternalArtifact", "name": "app", "namespace": "team-b"}}, []string{other, none}},
			"a reference without a kind":          {object{field: object{"name": "app"}}, []string{none}},
			"a reference of null":                 {object{field: nil}, []string{none}},
			"nothing":                             {object{}, []string{none}},
			"no spec":                             {nil, []string{none}},
			"the other kind's field": {
				object{map[string]string{"chartRef": "sourceRef", "sourceRef": "chartRef"}[field]: object{"kind": "OCIRepository", "name": "app"}}, []string{none}},
			"what the OCIRepository's fields mean": {repository(nil), []string{none}},
		} {
			all = append(all, scenario{name: kind + ": " + name, input: fluxReview(kind, c.spec), answer: denying, want: c.want})
		}
	}
	both := object{"chart": object{"spec": object{"chart": "app", "sourceRef": object{"kind": "HelmRepository", "name": "app"}}},
		"chartRef": object{"kind": "OCIRepository", "name": "app"}}
	return append(all,
		scenario{name: "HelmRelease: a chart", input: fluxReview("HelmRelease", object{"chart": both["chart"]}), answer: passing,
			want: []string{chart, "spec.chartRef " + none}},
		scenario{name: "HelmRelease: a chart and a reference", input: fluxReview("HelmRelease", both), answer: passing, want: []string{chart}},
		scenario{name: "HelmRelease: a chart of null", input: fluxReview("HelmRelease", object{"chart": nil, "chartRef": both["chartRef"]}), answer: denying})
}

// artifactRequests are updates, deletions, audits and parameters.
func artifactRequests() []scenario {
	review := func(spec any, change func(review object)) object {
		input := fluxReview("OCIRepository", spec)
		change(input["review"].(object)) //nolint:forcetypeassert // kindReview made it
		return input
	}
	good, bad := repository(nil), repository(object{"ref": object{"tag": "v1"}})
	suspended := repository(object{"ref": object{"tag": "v1"}, "suspend": true})
	update := func(now, old any) object {
		return updating(fluxReview("OCIRepository", now), object{"metadata": object{"finalizers": []any{"finalizers.fluxcd.io"}}, "spec": old})
	}
	audit := func(parameters object) object {
		return with(review(good, func(r object) { r["operation"] = "" }), parameters)
	}
	named := object{"auditProvider": auditProvider}
	const denied = "artifact " + artifact + " is denied in namespace team-a (traceID 4711): nobody signed it$"
	return []scenario{
		{name: "update: the same spec", input: update(good, good), answer: denying},
		{name: "update: the same spec without a digest", input: update(bad, bad), answer: denying},
		{name: "update: suspended", input: update(suspended, bad), answer: denying},
		{name: "update: resumed", input: update(bad, suspended), answer: passing, want: []string{"spec.ref.digest is missing"}},
		{name: "update: another digest", input: update(good, repository(object{"ref": object{"digest": "sha256:0"}})), answer: denying, asked: []string{artifactKey},
			want: []string{denied}},
		{name: "update: the digest goes", input: update(bad, good), answer: passing, want: []string{"spec.ref.digest is missing"}},
		{name: "update: no old object", input: updating(fluxReview("OCIRepository", good), nil), answer: denying, asked: []string{artifactKey},
			want: []string{denied}},
		{name: "delete", input: review(bad, func(r object) { r["operation"] = "DELETE" }), answer: denying},
		{name: "no namespace", input: review(good, func(r object) { delete(r, "namespace") }), answer: passing,
			want: []string{"nothing can be verified without a namespace"}},
		{name: "empty namespace", input: review(good, func(r object) { r["namespace"] = "" }), answer: passing,
			want: []string{"nothing can be verified without a namespace"}},
		{name: "no review", input: object{}, want: []string{"nothing can be verified without a namespace", "this kind cannot be bound"}},
		{name: "no operation", input: review(good, func(r object) { delete(r, "operation") }), answer: denying, asked: []string{artifactKey}, want: []string{denied}},
		{name: "parameters of null", input: object{"review": fluxReview("OCIRepository", good)["review"], "parameters": nil}, answer: denying,
			asked: []string{artifactKey}, want: []string{denied}},
		{name: "another provider", input: with(fluxReview("OCIRepository", good), object{"provider": "another"}), answer: passing, want: []string{missingProvider}},
		{name: "audit: its own provider", input: audit(named), answer: denying, asked: []string{auditProvider + " " + artifactKey}, want: []string{denied}},
		{name: "audit: without a provider of its own", input: audit(object{}), answer: denying, asked: []string{artifactKey}, want: []string{denied}},
		{name: "audit: a provider that is not there", input: audit(object{"auditProvider": "landwaiter-missing"}), answer: denying, asked: []string{artifactKey},
			want: []string{denied}},
		{name: "admission never asks the audit's provider", input: with(fluxReview("OCIRepository", good), named), answer: denying, asked: []string{artifactKey},
			want: []string{denied}},
	}
}

// artifactModules are the template and its libraries.
func artifactModules(t testing.TB) []*ast.Module {
	t.Helper()
	return readTemplate(t, "verified-artifacts").parse(t)
}

func prepareArtifacts(ctx context.Context, modules []*ast.Module) (rego.PreparedEvalQuery, error) {
	var parsed []func(*rego.Rego)
	for i, module := range modules {
		module.Package.Location.File = fmt.Sprintf("%d.rego", i) // the key under which it is kept
		parsed = append(parsed, rego.ParsedModule(module))
	}
	return compileFor(ctx, "verifiedartifacts", parsed...)
}

func TestOnlyArtifactsThatAreProvenAreAdmitted(t *testing.T) {
	query, err := prepareArtifacts(t.Context(), artifactModules(t))
	require.NoError(t, err)
	for _, s := range artifactScenarios() {
		t.Run(s.name, func(t *testing.T) {
			messages, asked, err := review(t.Context(), query, s.input, s.answer)
			require.NoError(t, s.failure(messages, asked, err))
			for _, message := range messages {
				require.NotContains(t, message, "\n")
			}
		})
	}
}
