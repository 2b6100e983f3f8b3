package schema_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

// samples returns the resources of config/samples in JSON, with their kinds.
func samples(t testing.TB) (found []sample) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(written.Samples(t, "../../../config/samples", time.Now()), "*.yaml"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, document := range strings.Split(string(text), "\n---\n") {
			encoded, err := yaml.YAMLToJSONStrict([]byte(document))
			require.NoError(t, err)
			var head struct{ Kind string }
			require.NoError(t, yaml.Unmarshal(encoded, &head))
			if _, ours := v1beta1.KindNamed(head.Kind); ours {
				found = append(found, sample{head.Kind, encoded})
			}
		}
	}
	require.NotEmpty(t, found)
	return found
}

type sample struct {
	kind string
	text []byte
}

func (s sample) typed(t testing.TB) v1beta1.Object {
	t.Helper()
	kind, ok := v1beta1.KindNamed(s.kind)
	require.True(t, ok)
	object := kind.New()
	require.NoError(t, yaml.Unmarshal(s.text, object))
	return object
}

func read(t testing.TB, document string) sample {
	t.Helper()
	encoded, err := yaml.YAMLToJSONStrict([]byte(document))
	require.NoError(t, err)
	var head struct{ Kind string }
	require.NoError(t, yaml.Unmarshal(encoded, &head))
	return sample{head.Kind, encoded}
}

func TestAcceptsEverySampleAsTextAndDecoded(t *testing.T) {
	set, kinds := schema.Embedded(), map[string]bool{}
	for _, s := range samples(t) {
		require.NoError(t, set.RefusesText(t.Context(), s.kind, s.text), "%s", s.text)
		require.NoError(t, set.Refuses(t.Context(), s.typed(t)), "%s", s.text)
		kinds[s.kind] = true
	}
	for _, kind := range v1beta1.Kinds() {
		require.True(t, kinds[kind.Name], "there is no sample of kind %s", kind.Name)
	}
}

func TestRefusesWithFieldAndFix(t *testing.T) {
	const keys = "type: Cosign, cosign: {keys: {trustStoreRefs: [{name: k}], insecureIgnoreTransparencyLog: true}}"
	set := schema.Embedded()
	for name, c := range map[string]struct{ kind, spec, text string }{
		"enum":       {"Verifier", "{type: Other}", `spec.type: "Other" is not supported; use one of `},
		"required":   {"VerificationPolicy", "{rules: [{action: Deny}]}", "spec.rules[0].images: it is missing; add it"},
		"one-of":     {"Verifier", "{type: Cosign, cosign: {}}", "spec.cosign: exactly one of the fields in [keys keyless] must be set"},
		"empty list": {"Verifier", "{images: [], " + keys + "}", "spec.images: must have at least 1 entry; add one"},
		"no requirement": {"VerificationPolicy", "{rules: [{images: ['**'], require: []}]}",
			"spec.rules[0].require: must have at least 1 entry; add one, or for images that need no check write action: Allow"},
		"too many":       {"Verifier", "{images: [" + strings.TrimSuffix(strings.Repeat("a,", 300), ",") + "], " + keys + "}", "; shorten it"},
		"no time":        {"Exception", "{images: [r.example.com/a], until: soon, reason: r, approvedBy: a, owner: o}", `"soon" is not a time in RFC 3339`},
		"several faults": {"Verifier", "{type: Other, images: []}", "(and 1 more)"},
	} {
		t.Run(name, func(t *testing.T) {
			s := read(t, "apiVersion: landwaiter.dev/v1beta1\nkind: "+c.kind+"\nmetadata: {name: x, namespace: team-a}\nspec: "+c.spec)
			require.ErrorContains(t, set.RefusesText(t.Context(), s.kind, s.text), c.text)
			require.ErrorContains(t, set.Refuses(t.Context(), s.typed(t)), c.text, "decoded")
		})
	}
}

func TestSaysInTheWordsOfCompileWhatIsNoImageAndNoHost(t *testing.T) {
	const hex = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for name, c := range map[string]struct{ kind, spec, text string }{
		"no host": {"VerificationPolicy", "{rules: [{images: ['**', acme/app], action: Allow}]}",
			`spec.rules[0].images[1]: image pattern "acme/app": "acme" is not a registry host (no dot, no port); for Docker Hub write "docker.io/acme/app"`},
		"a scheme": {"Verifier", "{images: ['https://ghcr.io/x'], type: Cosign, cosign: {keys: {inline: x}}}",
			`spec.images[0]: image pattern "https://ghcr.io/x": host "https:": it has a scheme; leave out https://`},
		"a slash at the end": {"VerificationPolicy", "{rules: [{images: [ghcr.io/acme/], action: Allow}]}", "it is empty; remove the slash"},
		"capitals":           {"VerificationPolicy", "{rules: [{images: [ghcr.io/Acme], action: Allow}]}", "repositories are lower case"},
		"stars in a word":    {"VerificationPolicy", "{rules: [{images: ['ghcr.io/acme**'], action: Allow}]}", `"**" must stand alone between slashes`},
		"a digest of a rule": {"VerificationPolicy", "{rules: [{images: ['ghcr.io/acme@sha256:" + hex + "'], action: Allow}]}",
			"patterns match no tags and digests; remove it"},
		"a tag of exceptions": {"Exception", "{until: '2026-12-31T18:00:00Z', reason: r, images: ['ghcr.io/acme:v1@sha256:" + hex + "']}",
			"must be host/repository@sha256:… without a tag"},
		"another digest": {"Exception", "{until: '2026-12-31T18:00:00Z', reason: r, images: ['ghcr.io/acme@sha256:0']}",
			`spec.images[0]: image reference "ghcr.io/acme@sha256:0" is not valid`},
		"a registry's scheme": {"Store", "{registries: ['https://ghcr.io']}", `spec.registries[0]: registry "https://ghcr.io" is not a host or host:port (no ` +
			`scheme, no path): it has a scheme; leave out https://`},
		"a registry's path": {"Store", "{registries: [ghcr.io/acme]}", `spec.registries[0]: registry "ghcr.io/acme" is not a host or host:port`},
		"a mirror's host": {"Store", "{registries: [ghcr.io], mirrors: [{host: mirror}]}",
			`spec.mirrors[0].host: registry "mirror" is not a registry host: it needs a dot or a port`},
		"a mirror's path": {"Store", "{registries: [ghcr.io], mirrors: [{host: m.example.com, path: '{tag}'}]}",
			`spec.mirrors[0].path: "{tag}" has a placeholder other than`},
		"evidence at a host": {"Store", "{registries: [ghcr.io], evidence: {repositories: [{repository: e.example.com}]}}",
			`spec.evidence.repositories[0].repository: "e.example.com" has no path; write host/path`},
		"evidence elsewhere": {"Store", "{registries: [ghcr.io], evidence: {repositories: [{repository: acme/sigs}]}}",
			`spec.evidence.repositories[0].repository: registry "acme" is not a registry host`},
	} {
		t.Run(name, func(t *testing.T) {
			s := read(t, "apiVersion: landwaiter.dev/v1beta1\nkind: "+c.kind+"\nmetadata: {name: x, namespace: team-a}\nspec: "+c.spec)
			require.ErrorContains(t, schema.Embedded().RefusesText(t.Context(), s.kind, s.text), c.text)
		})
	}
}

func TestSaysWhatToWriteInPlaceOfAWrongType(t *testing.T) {
	set := schema.Embedded()
	for spec, want := range map[string]string{
		"{rules: [{images: ['**'], require: {anyOf: [a]}}]}": `spec.rules[0].require: it is an object and must be a list; write "- " before it`,
		"{rules: [{images: r.example.com/app}]}":             "spec.rules[0].images: it is text and must be a list; put it into [ ]",
		"{rules: [{images: 5}]}":                             "spec.rules[0].images: it is a number and must be a list; put it into [ ]",
		"{rules: [r.example.com/app]}":                       "spec.rules[0]: it is text and must be an object; write its fields as name: value",
		"{rules: [[{images: ['**']}]]}":                      `spec.rules[0]: it is a list and must be an object; write its fields without "- " or [ ]`,
		"{rules: [{images: ['**'], require: [null]}]}":       "spec.rules[0].require[0]: it is empty and must be an object; give it a value, or remove it",
		"{rules: [{images: [on], action: Allow}]}":           "spec.rules[0].images[0]: it is true or false and must be text; put it into quotes",
		"{rules: [{images: [[a]], action: Allow}]}":          "spec.rules[0].images[0]: it is a list and must be text; write one value",
		"{defaultAction: {a: b}}":                            "spec.defaultAction: it is an object and must be text; write one value",
	} {
		s := read(t, "apiVersion: landwaiter.dev/v1beta1\nkind: VerificationPolicy\nmetadata: {name: x, namespace: team-a}\nspec: "+spec)
		require.ErrorContains(t, set.RefusesText(t.Context(), s.kind, s.text), want, spec)
	}
}

func TestAClusterKindHasNoNamespace(t *testing.T) {
	s := read(t, "apiVersion: landwaiter.dev/v1beta1\nkind: ClusterVerificationPolicy\nmetadata: {name: x, namespace: team-a}\nspec: {defaultAction: Allow}")
	require.EqualError(t, schema.Embedded().RefusesText(t.Context(), s.kind, s.text),
		"metadata.namespace: this kind is cluster-scoped and has no namespace; remove it")
}

// What is below a node of the wrong type is no fault of its own.
func TestFieldsBelowAWrongTypeAreNotUnknown(t *testing.T) {
	kind, err := schema.Embedded().Of("VerificationPolicy")
	require.NoError(t, err)
	for spec, want := range map[string][]string{
		"{rules: [{images: ['**'], require: {anyOf: [a]}}]}": {},
		"{rules: {images: ['**']}}":                          {},
		"[{rules: []}]":                                      {},
		"{rules: [{image: ['**'], require: {anyOf: [a]}}]}":  {"spec.rules[0].image"},
		"{rule: {images: ['**']}}":                           {"spec.rule"},
	} {
		s := read(t, "apiVersion: landwaiter.dev/v1beta1\nkind: VerificationPolicy\nmetadata: {name: x, namespace: team-a}\nspec: "+spec)
		var object map[string]any
		require.NoError(t, yaml.Unmarshal(s.text, &object))
		unknown, _ := kind.Validate(t.Context(), object)
		require.ElementsMatch(t, want, unknown, spec)
	}
}

func TestRefusalIsBoundedAndValidText(t *testing.T) {
	v := &v1beta1.Verifier{Spec: v1beta1.VerifierSpec{Type: v1beta1.VerifierType(strings.Repeat("ä", 50_000))}}
	v.Name, v.Namespace = "x", "team-a"
	err := schema.Embedded().Refuses(t.Context(), v)
	require.Error(t, err)
	require.Less(t, len(err.Error()), 2<<10)
	require.True(t, strings.ToValidUTF8(err.Error(), "") == err.Error())
}

func TestStatusLabelsAndAnnotationsOfOthersRefuseNothing(t *testing.T) {
	s := samples(t)[0]
	object := s.typed(t)
	object.SetAnnotations(map[string]string{"no key at all": "x"})
	object.CommonStatus().Conditions = append(object.CommonStatus().Conditions, object.CommonStatus().Conditions...)
	require.NoError(t, schema.Embedded().Refuses(t.Context(), object))
}

func TestRefusesAKindWithoutCRD(t *testing.T) {
	_, err := schema.Embedded().Of("Other")
	require.ErrorContains(t, err, "no CRD")
	require.Error(t, schema.Embedded().RefusesText(t.Context(), "Other", []byte("{}")))
}

func TestSeveralGoroutinesValidateAtOnce(t *testing.T) {
	set, all := schema.Embedded(), samples(t)
	var group sync.WaitGroup
	errs := make([]error, 4*len(all))
	for i := range errs {
		object := all[i%len(all)].typed(t)
		group.Go(func() { errs[i] = set.Refuses(t.Context(), object) })
	}
	group.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

// A field that Go always writes, and that the schema does not require, would have its zero
// value validated although it was left out, and refuse what an API server accepts.
func TestEveryFieldThatIsAlwaysWrittenIsRequired(t *testing.T) {
	set := schema.Embedded()
	for _, kind := range v1beta1.Kinds() {
		s, err := set.Of(kind.Name)
		require.NoError(t, err)
		spec, ok := reflect.TypeOf(kind.New()).Elem().FieldByName("Spec")
		require.True(t, ok)
		alwaysWritten(spec.Type, func(path []string, field string) {
			require.True(t, s.Requires(path, field), "%s: spec.%s.%s", kind.Name, strings.Join(path, "."), field)
		}, nil)
	}
}

// alwaysWritten calls do for each field below of that is written even if it is zero.
func alwaysWritten(of reflect.Type, do func(path []string, field string), path []string) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
		if of = of.Elem(); of.Kind() != reflect.Pointer && of.Kind() != reflect.Struct && of.Kind() != reflect.Slice {
			return
		}
	}
	if of.Kind() != reflect.Struct || !strings.Contains(of.PkgPath(), "landwaiter") {
		return
	}
	for i := range of.NumField() {
		f := of.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			alwaysWritten(f.Type, do, path)
			continue
		}
		if !strings.Contains(options, "omit") && !slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Map}, f.Type.Kind()) {
			do(path, name)
		}
		alwaysWritten(f.Type, do, append(slices.Clone(path), name))
	}
}

// Memory at rest is for what admissions need.
func TestSchemasAreDroppedOnceUnused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := schema.NewSet()
		require.Zero(t, set.Prepared())
		for range 3 {
			for _, kind := range v1beta1.Kinds() {
				_, err := set.Of(kind.Name)
				require.NoError(t, err)
			}
			require.Equal(t, len(v1beta1.Kinds()), set.Prepared())
			time.Sleep(schema.KeepUnused / 2)
		}
		_, err := set.Of("Verifier")
		require.NoError(t, err)
		require.Equal(t, len(v1beta1.Kinds()), set.Prepared())
		time.Sleep(2*schema.KeepUnused + time.Second)
		require.Zero(t, set.Prepared())
		_, err = set.Of("Verifier")
		require.NoError(t, err, "it is prepared again")
		time.Sleep(2*schema.KeepUnused + time.Second)
		require.Zero(t, set.Prepared())
	})
}

// The library compares each error with all others, which takes minutes for 20,000.
func TestALargeObjectIsRefusedForSomeOfItsMistakes(t *testing.T) {
	policy := func(change func(*v1beta1.VerificationPolicySpec)) *v1beta1.VerificationPolicy {
		made := &v1beta1.VerificationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "team-a"}}
		for range 64 {
			requirement := v1beta1.Requirement{AnyOf: make([]string, 20)}
			for i := range requirement.AnyOf {
				requirement.AnyOf[i] = fmt.Sprint("v", i)
			}
			made.Spec.Rules = append(made.Spec.Rules, v1beta1.PolicyRule{Images: []string{"**"}, Require: []v1beta1.Requirement{requirement}})
		}
		change(&made.Spec)
		return made
	}
	for what, c := range map[string]struct {
		change func(*v1beta1.VerificationPolicySpec)
		says   []string
	}{
		"nothing": {func(*v1beta1.VerificationPolicySpec) {}, nil},
		"20,000 names": {func(s *v1beta1.VerificationPolicySpec) { s.Rules[0].Require[0].AnyOf = make([]string, 20_000) },
			[]string{"spec.rules[0].require[0].anyOf: must have at most 32 items", " more)"}},
		"empty names": {func(s *v1beta1.VerificationPolicySpec) {
			for i := range s.Rules {
				s.Rules[i].Require[0].AnyOf = make([]string, 20)
			}
		}, []string{"spec.rules[0].require[0].anyOf[0]: should be at least 1 chars long", "more)"}},
		"names given twice": {func(s *v1beta1.VerificationPolicySpec) {
			for i := range s.Rules {
				names := s.Rules[i].Require[0].AnyOf
				copy(names[10:], names[:10])
			}
		}, []string{"spec.rules[0].require[0].anyOf[10]: it is given twice", "(and 99 more)"}},
		"an unknown action": {func(s *v1beta1.VerificationPolicySpec) { s.Rules[63].Action = "Perhaps" },
			[]string{`spec.rules[63].action: "Perhaps" is not supported`}},
	} {
		err := schema.Embedded().Refuses(t.Context(), policy(c.change))
		if len(c.says) == 0 {
			require.NoError(t, err, what)
		}
		for _, says := range c.says {
			require.ErrorContains(t, err, says, what)
		}
	}
}

// Replicas and conditions say the same.
func TestErrorsAreInTheOrderOfTheObject(t *testing.T) {
	paths := func(errs field.ErrorList) (paths []string) {
		for _, e := range errs {
			paths = append(paths, e.Field)
		}
		return paths
	}
	s := read(t, "apiVersion: landwaiter.dev/v1beta1\nkind: VerificationPolicy\nmetadata: {name: x, namespace: team-a}\n"+
		"spec: {tags: x, defaultAction: x, rules: ["+strings.Repeat("{images: ['**'], action: Allow}, ", 10)+"{images: [a b, b c], action: x}, {action: x}]}")
	kind, err := schema.Embedded().Of(s.kind)
	require.NoError(t, err)
	for range 20 {
		_, errs := kind.Validate(t.Context(), decoded(t, s))
		require.Equal(t, []string{"spec.defaultAction", "spec.rules[10].action", "spec.rules[10].images[0]", "spec.rules[10].images[1]", "spec.rules[11].images",
			"spec.rules[11].action", "spec.tags"}, paths(errs))
	}
	a := field.NewPath("a")
	require.Equal(t, []string{"a", "a[2]", "a[2].b", "a[10]", "a.b", "ab"}, paths(schema.InOrder(field.ErrorList{
		field.Invalid(field.NewPath("ab"), nil, ""), field.Invalid(a.Index(10), nil, ""), field.Invalid(a.Index(2).Child("b"), nil, ""),
		field.Invalid(a.Index(2), nil, ""), field.Invalid(a.Child("b"), nil, ""), field.Invalid(a, nil, "")})))
}

// Whatever the program reads as a pattern, the CRDs let in.
func TestImagePatternsWithoutTagsAreAccepted(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0", 64)
	for text, accepted := range map[string][2]bool{ // by rules, and by exceptions
		"**": {true, true}, "r.example.com/**": {true, true}, "*.example.com/app": {true, true}, "localhost:5000/a/b": {true, true}, "[::1]:5000/a": {},
		"acme/app": {}, "r.example.com/": {}, "docker.io/nginx": {true, true},
		"r.example.com/app:v1": {}, "r.example.com:5000/app:v1": {}, "nginx": {}, "nginx:1.2": {}, "r.example.com/app:v1" + digest: {},
		"r.example.com/app" + digest: {false, true}, "nginx" + digest: {false, true}, "r.example.com:5000/app" + digest: {false, true},
	} {
		policy := &v1beta1.VerificationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p"},
			Spec: v1beta1.VerificationPolicySpec{Rules: []v1beta1.PolicyRule{{Images: []string{text}, Action: v1beta1.RuleActionAllow}}}}
		err := schema.Embedded().Refuses(t.Context(), policy)
		require.Equal(t, accepted[0], err == nil, "%s: %v", text, err)
		if strings.HasSuffix(text, ":v1") {
			require.ErrorContains(t, err, "patterns match no tags and digests; remove it", "as check says")
		}
		exception := &v1beta1.Exception{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "x"},
			Spec: v1beta1.ExceptionSpec{Until: "2026-12-31T18:00:00Z", Reason: "r", Images: []string{text}}}
		err = schema.Embedded().Refuses(t.Context(), exception)
		require.Equal(t, accepted[1], err == nil, "%s: %v", text, err)
	}
}
