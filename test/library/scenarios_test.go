package library

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/stretchr/testify/require"
)

// scenario is a review with what must come of it.
type scenario struct {
	name   string
	input  any
	answer provider
	asked  []string // sorted; nil: nobody is asked
	want   []string // parts of the messages, one for each, or the end with a "$"; nil: admitted
}

// traceLine is the last line of the denials that a provider says here.
const traceLine = "traceID 4711"

// failure says what is wrong with the outcome of a scenario.
func (s scenario) failure(messages, asked []string, err error) error {
	if trace := traceLine + "$"; !slices.Contains(s.want, trace) { // it ends every usual denial
		messages = slices.DeleteFunc(slices.Clone(messages), func(message string) bool { return message == traceLine })
	}
	switch {
	case err != nil:
		return err
	case len(messages) != len(s.want):
		return fmt.Errorf("%d messages instead of %d: %q", len(messages), len(s.want), messages)
	case !slices.Equal(asked, s.asked):
		return fmt.Errorf("asked about %q instead of %q", asked, s.asked)
	}
	for i, want := range s.want {
		end, ends := strings.CutSuffix(want, "$")
		if !strings.Contains(messages[i], end) || ends && !strings.HasSuffix(messages[i], end) {
			return fmt.Errorf("%q does not say %q", messages[i], want)
		}
	}
	return nil
}

func scenarios() []scenario {
	all := slices.Concat(hostileAnswers(), malformedObjects(), everyPlace(), updates(), blanks(), parameters(), audits(), texts())
	for _, s := range all { // what the API server fills in lets the template compare all at once
		if input, ok := s.input.(object); ok && input["parameters"] == nil {
			s.name, s.input = s.name+", with the default of the CRD", with(maps.Clone(input), object{"provider": admissionProvider})
			all = append(all, s)
		}
	}
	return all
}

const image, key = "r/app:v1", "[team-a]r/app:v1"

func pod(images ...string) object { return object{"containers": containers(images...)} }

// hostileAnswers are answers to one key: only a success for exactly this key, and
// nothing beside it, admits.
func hostileAnswers() []scenario {
	const denied = "image r/app:v1 is denied in namespace team-a: "
	const undecided = "undecided: image r/app:v1 could not be decided in namespace team-a"
	const unclear = undecided + ": the provider gave no answer that could be understood"
	good, refused := []any{key, object{"isSuccess": true}}, []any{key, object{"isSuccess": false, "reason": "nobody signed it"}}
	list := func(items ...any) []any { return items }
	none := []any{}
	var all []scenario
	for name, c := range map[string]struct {
		answer any
		want   string
	}{
		"success":                          {answers(list(good), none, ""), ""},
		"success with reports":             {answers(list([]any{key, object{"isSuccess": true, "reason": "fine", "verifierReports": none}}), none, ""), ""},
		"success twice":                    {answers(list(good, good), none, ""), ""},
		"refused":                          {answers(list(refused), none, ""), denied + "nobody signed it"},
		"refused without a reason":         {answers(list([]any{key, object{"isSuccess": false}}), none, ""), unclear},
		"refused with a number for reason": {answers(list([]any{key, object{"isSuccess": false, "reason": 7}}), none, ""), unclear},
		"no answer":                        {answers(none, none, ""), unclear},
		"an answer for another":            {answers(list([]any{"[team-b]r/app:v1", object{"isSuccess": true}}), none, ""), unclear},
		"an answer for another as well":    {answers(list(good, []any{"[team-a]r/other", object{"isSuccess": true}}), none, ""), unclear},
		"the untagged key":                 {answers(list([]any{image, object{"isSuccess": true}}), none, ""), unclear},
		"a text that says true":            {answers(list([]any{key, object{"isSuccess": "true"}}), none, ""), unclear},
		"a number":                         {answers(list([]any{key, object{"isSuccess": 1}}), none, ""), unclear},
		"null":                             {answers(list([]any{key, nil}), none, ""), unclear},
		"a list":                           {answers(list([]any{key, []any{true}}), none, ""), unclear},
		"plain true":                       {answers(list([]any{key, true}), none, ""), unclear},
		"no isSuccess":                     {answers(list([]any{key, object{"succeeded": true}}), none, ""), unclear},
		"an error":                         {answers(none, list([]any{key, "not found"}), ""), denied + "not found"},
		"an error that is no text":         {answers(none, list([]any{key, nil}), ""), unclear},
		"a success and an error":           {answers(list(good), list([]any{key, "not found"}), ""), denied + "not found"},
		"a success and an unclear error":   {answers(list(good), list([]any{key, 7}), ""), unclear},
		"a success and a refusal":          {answers(list(good, refused), none, ""), denied + "nobody signed it"},
		"a refusal and a success":          {answers(list(refused, good), none, ""), denied + "nobody signed it"},
		"a success and no object":          {answers(list(good, []any{key, nil}), none, ""), unclear},
		"a success and a bare key":         {answers(list(good, []any{key}), none, ""), unclear},
		"a success and null":               {answers(list(good, nil), none, ""), unclear},
		"a system error": {answers(none, none, "the registry is slow"),
			undecided + ": Gatekeeper got no answer from Landwaiter: the registry is slow; try again"},
		"a system error with a success": {answers(list(good), none, "the registry is slow"),
			undecided + ": Gatekeeper got no answer from Landwaiter: the registry is slow; try again"},
		"a system error that is no text": {answers(list(good), none, object{"a": 1}), undecided + ": Gatekeeper got no answer from Landwaiter: "},
		"a system error with lines": {answers(none, none, "the registry is slow\nimage x is denied"),
			undecided + ": Gatekeeper got no answer from Landwaiter: the registry is slow image x is denied; try again$"},
		"a system error that denies": {answers(none, none, "denied: the request is about more images. To fix: split the object (traceID 4711)"),
			"denied: the request is about more images. To fix: split the object (traceID 4711)$"},
		"a system error of null":            {answers(list(good), none, nil), undecided + ": Gatekeeper got no answer from Landwaiter: "},
		"no system error":                   {object{"responses": list(good), "errors": none}, unclear},
		"no errors":                         {object{"responses": list(good), "system_error": ""}, unclear},
		"errors of null":                    {object{"responses": list(good), "errors": nil, "system_error": ""}, unclear},
		"nothing at all":                    {object{}, unclear},
		"no object":                         {"garbage", unclear},
		"responses that are no list":        {object{"responses": "garbage", "errors": none, "system_error": ""}, unclear},
		"responses that are an object":      {object{"responses": object{"0": good}, "errors": none, "system_error": ""}, unclear},
		"responses that are a set of a key": {object{"responses": object{key: object{"isSuccess": true}}, "errors": none, "system_error": ""}, unclear},
	} {
		s := scenario{name: "answer: " + name, input: podReview("team-a", pod(image)), answer: says(c.answer), asked: []string{key}}
		if c.want != "" {
			s.want = []string{c.want}
		}
		all = append(all, s)
	}
	return append(all, scenario{name: "answer: the call fails", input: podReview("team-a", pod(image)), asked: []string{key}, want: []string{unclear}})
}

// malformedObjects is what cannot be asked about; the provider would pass it.
func malformedObjects() []scenario {
	good := containers(image)[0]
	without := func(field string) object {
		input := podReview("team-a", pod(image))
		delete(input["review"].(object), field) //nolint:forcetypeassert // podReview made it
		return input
	}
	container := func(odd any) any { return podReview("team-a", object{"containers": []any{odd, good}}) }
	volume := func(source any) any {
		return podReview("team-a", object{"containers": []any{good}, "volumes": []any{object{"name": "v", "image": source}}})
	}
	all := []scenario{
		{name: "no review", input: object{}, want: []string{"the images could not be verified"}},
		{name: "empty namespace", input: podReview("", pod(image)), want: []string{"without a namespace"}},
		{name: "no namespace", input: without("namespace"), want: []string{"without a namespace"}},
		{name: "namespace of another type",
			input: object{"review": object{"kind": object{"kind": "Pod"}, "namespace": 7, "object": object{"spec": pod(image)}, "operation": "CREATE"}},
			want:  []string{"without a namespace"}},
		{name: "no object", input: without("object"), want: []string{"cannot find the pods of kind Pod"}},
		{name: "no kind", input: without("kind"), want: []string{"cannot find the pods of kind unknown"}},
		{name: "no specification", input: podReview("team-a", nil), want: []string{"cannot find the pods"}},
		{name: "no containers", input: podReview("team-a", object{}), want: []string{"there is no image"}},
		{name: "containers of null", input: podReview("team-a", object{"containers": nil}), want: []string{"there is no image"}},
		{name: "containers, no list", input: podReview("team-a", object{"containers": "garbage"}), want: []string{"there is no image"}},
		{name: "only a volume without an image", input: podReview("team-a", object{"volumes": []any{object{"name": "v"}}}), want: []string{"there is no image"}},
		{name: "unknown kind", input: kindReview("Rollout", "team-a", object{"spec": pod(image)}), want: []string{"cannot find the pods of kind Rollout"}},
		{name: "a Service of Kubernetes", input: kindReview("Service", "team-a", object{"spec": object{"ports": []any{object{"port": 80}}}}),
			want: []string{"cannot find the pods of kind Service"}},
		{name: "a Configuration without pods", input: kindReview("Configuration", "team-a", object{"spec": object{"package": image}}),
			want: []string{"cannot find the pods of kind Configuration"}},
		{name: "a Revision of Knative", input: kindReview("Revision", "team-a", object{"spec": pod(image)}), want: []string{"cannot find the pods of kind Revision"}},
		{name: "Deployment without a template", input: kindReview("Deployment", "team-a", object{"spec": object{}}),
			want: []string{"cannot find the pods of kind Deployment"}},
		{name: "null volume image", input: volume(nil), want: []string{"volumes[0] v has no image"}},
		{name: "volume without a reference", input: volume(object{}), want: []string{"volumes[0] v has no image"}},
		{name: "volume with an empty reference", input: volume(object{"reference": ""}), want: []string{"volumes[0] v has no image"}},
		{name: "volume image of false", input: volume(false), want: []string{"volumes[0] v has no image"}},
		{name: "volume image of text", input: volume("garbage"), want: []string{"volumes[0] v has no image"}},
		{name: "a container beside an image volume",
			input: podReview("team-a", object{"containers": []any{nil}, "volumes": []any{object{"name": "v", "image": object{"reference": image}}}}),
			want:  []string{"containers[0] without a name has no image"}},
		{name: "two at once", input: podReview("team-a", object{"initContainers": []any{nil}, "containers": []any{good, "garbage"}}),
			want: []string{"containers[1] without a name has no image", "initContainers[0] without a name has no image"}},
	}
	for name, odd := range map[string]any{
		"null": nil, "text": "garbage", "a number": 7, "false": false, "a list": []any{image}, "no image": object{"name": "c"},
		"an empty image": object{"name": "c", "image": ""}, "an image of null": object{"name": "c", "image": nil},
		"an image that is a number": object{"name": "c", "image": 7}, "an image that is a list": object{"name": "c", "image": []any{image}},
		"an image that is an object": object{"name": "c", "image": object{"reference": image}}, "an image that is false": object{"name": "c", "image": false},
	} {
		all = append(all, scenario{name: "container: " + name, input: container(odd), want: []string{"containers[0] "}})
	}
	for i := range all {
		all[i].name, all[i].answer = "malformed: "+all[i].name, passing
	}
	return all
}

// everyPlace has an image in each place of each kind.
func everyPlace() []scenario {
	spec := object{
		"containers": containers("a", "b", "a"), "initContainers": containers("c"), "ephemeralContainers": containers("d"),
		"volumes": []any{object{"name": "v", "image": object{"reference": "e"}}, object{"name": "other", "emptyDir": object{}}},
	}
	asked := []string{"[team-a]a", "[team-a]b", "[team-a]c", "[team-a]d", "[team-a]e"}
	var denied []string
	for _, image := range []string{"a", "b", "c", "d", "e"} {
		denied = append(denied, "image "+image+" is denied in namespace team-a: nobody signed it")
	}
	template := object{"template": object{"spec": spec}}
	var all []scenario
	for kind, where := range map[string]any{
		"Pod": spec, "Deployment": template, "ReplicaSet": template, "StatefulSet": template, "DaemonSet": template,
		"ReplicationController": template, "Job": template, "CronJob": object{"jobTemplate": object{"spec": template}},
		"DeploymentConfig": template, "Configuration": template, "Service": template,
	} {
		input := kindReview(kind, "team-a", object{"spec": where})
		all = append(all,
			scenario{name: kind + ": every image passes", input: input, answer: passing, asked: asked},
			scenario{name: kind + ": every image is denied", input: input, answer: denying, asked: asked, want: denied})
	}
	deleting := podReview("team-a", pod(image))
	deleting["review"].(object)["operation"] = "DELETE" //nolint:forcetypeassert // podReview made it
	audit := podReview("team-a", pod(image))
	delete(audit["review"].(object), "operation") //nolint:forcetypeassert // podReview made it
	created := podReview("team-a", pod(image))
	created["review"].(object)["oldObject"] = object{"spec": pod(image)} //nolint:forcetypeassert // podReview made it
	return append(all,
		scenario{name: "only an update has an old object", input: created, answer: denying, asked: []string{key}, want: []string{"nobody signed it"}},
		scenario{name: "deleting is not asked about", input: with(deleting, object{"warnings": true}), answer: denying},
		scenario{name: "an audit has no operation", input: audit, answer: denying, asked: []string{key}, want: []string{"nobody signed it"}})
}

// updates are asked about where they bring an image, and only there.
func updates() []scenario {
	denied := func(image string) []string { return []string{"image " + image + " is denied"} }
	var all []scenario
	podUpdate := func(name string, old, now any, asked ...string) {
		s := scenario{name: "update of a pod: " + name, input: updating(podReview("team-a", now), old), answer: denying}
		for _, image := range asked {
			s.asked, s.want = append(s.asked, "[team-a]"+image), append(s.want, denied(image)...)
		}
		all = append(all, s)
	}
	running := object{"containers": containers("a", "b"), "initContainers": containers("c"),
		"volumes": []any{object{"name": "v", "image": object{"reference": "e"}}}}
	changed := func(field string, value any) object {
		spec := object{"containers": running["containers"], "initContainers": running["initContainers"], "volumes": running["volumes"], "priority": 7}
		spec[field] = value
		return spec
	}
	old := object{"spec": running}
	debugger := object{"name": "debugger", "image": "d"}
	podUpdate("nothing", old, running)
	podUpdate("another field", old, changed("priority", 8))
	podUpdate("a container less", old, changed("containers", containers("a")))
	podUpdate("no volume any more", old, changed("volumes", nil))
	podUpdate("the order of containers", old, changed("containers", []any{containers("a", "b")[1], containers("a")[0]}))
	podUpdate("an image", old, changed("containers", containers("a", "x")), "x")
	podUpdate("an image of an init container", old, changed("initContainers", containers("x")), "x")
	podUpdate("an image volume", old, changed("volumes", []any{object{"name": "v", "image": object{"reference": "x"}}}), "x")
	podUpdate("another image volume", old, changed("volumes", []any{object{"name": "w", "image": object{"reference": "e"}}}), "e")
	podUpdate("containers that swap their images", old, changed("containers", containers("b", "a")), "a", "b")
	podUpdate("a container that takes the image of another", old, changed("containers", containers("b", "b")), "b")
	podUpdate("a container that moves to another field", old, changed("initContainers", containers("a")), "a")
	podUpdate("a container with the same image and another name", old, changed("containers", []any{object{"name": "new", "image": "a"}}), "a")
	podUpdate("an ephemeral container", old, changed("ephemeralContainers", []any{debugger}), "d")
	podUpdate("a second ephemeral container", object{"spec": changed("ephemeralContainers", []any{debugger})},
		changed("ephemeralContainers", []any{debugger, object{"name": "again", "image": "d"}}), "d")
	for name, odd := range map[string]any{"null": nil, "a text": "garbage", "a list": []any{running}, "empty": object{},
		"without containers":              object{"spec": object{}},
		"with a text for a specification": object{"spec": "garbage"}, "with a text for containers": object{"spec": object{"containers": "garbage"}},
		"with containers of null": object{"spec": object{"containers": []any{nil, nil}}}} {
		podUpdate("the old object is "+name, odd, pod("a", "b"), "a", "b")
	}
	all = append(all,
		scenario{name: "update of a pod: a malformed container that was there",
			input:  updating(podReview("team-a", object{"containers": []any{nil}}), object{"spec": object{"containers": []any{nil}}}),
			answer: passing, want: []string{"containers[0] without a name has no image"}},
		scenario{name: "update of a pod: without any image", input: updating(podReview("team-a", object{}), object{"spec": object{}}), answer: passing,
			want: []string{"there is no image"}},
		scenario{name: "update of a pod: no old object", input: updating(podReview("team-a", pod("a")), nil), answer: passing, asked: []string{"[team-a]a"}})

	template := func(label string, images ...string) object {
		return object{"metadata": object{"labels": object{"app": label}}, "spec": pod(images...)}
	}
	for _, kind := range []string{"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController", "Job", "CronJob", "DeploymentConfig",
		"Configuration", "Service"} {
		of := func(replicas int, template any) object {
			if kind == "CronJob" {
				return object{"spec": object{"suspend": replicas == 0, "jobTemplate": object{"spec": object{"template": template}}}}
			}
			return object{"spec": object{"replicas": replicas, "template": template}}
		}
		for name, c := range map[string]struct {
			old, now any
			asked    []string
		}{
			"scaled":                   {of(1, template("x", "a", "b")), of(0, template("x", "a", "b")), nil},
			"another image":            {of(1, template("x", "a", "b")), of(1, template("x", "a", "c")), []string{"a", "c"}},
			"another template":         {of(1, template("x", "a", "b")), of(1, template("y", "a", "b")), []string{"a", "b"}},
			"no old object":            {nil, of(1, template("x", "a")), []string{"a"}},
			"an old text":              {"garbage", of(1, template("x", "a")), []string{"a"}},
			"an old object of a pod":   {object{"spec": pod("a")}, of(1, template("x", "a")), []string{"a"}},
			"a template that was null": {of(1, nil), of(1, template("x", "a")), []string{"a"}},
		} {
			now, _ := c.now.(object)
			s := scenario{name: "update of a " + kind + ": " + name, input: updating(kindReview(kind, "team-a", now), c.old), answer: denying}
			for _, image := range c.asked {
				s.asked, s.want = append(s.asked, "[team-a]"+image), append(s.want, denied(image)...)
			}
			all = append(all, s)
		}
		all = append(all, scenario{name: "update of a " + kind + ": no template, as before", input: updating(kindReview(kind, "team-a", of(1, nil)), of(1, nil)),
			answer: passing, want: []string{"cannot find the pods of kind " + kind}})
	}
	return all
}

// blanks are images of workloads that OpenShift's image triggers set later.
func blanks() []scenario {
	template := func(images ...string) object {
		return object{"spec": object{"template": object{"spec": pod(images...)}}}
	}
	var all []scenario
	for _, kind := range []string{"Deployment", "StatefulSet", "DeploymentConfig"} {
		of := func(namespace string, images ...string) object {
			return kindReview(kind, namespace, template(images...))
		}
		all = append(all,
			scenario{name: "blank: the only image of a " + kind, input: of("team-a", " "), answer: denying},
			scenario{name: "blank: several spellings in a " + kind, input: of("team-a", " ", "\t", "\u00a0\n"), answer: denying},
			scenario{name: "blank: beside an image of a " + kind, input: of("team-a", " ", "a"), answer: denying, asked: []string{"[team-a]a"},
				want: []string{"image a is denied"}},
			scenario{name: "blank: beside an exempt image of a " + kind, input: with(of("team-a", " ", "a"), object{"exemptImages": []any{"a"}}), answer: denying},
			scenario{name: "blank: beside an empty image of a " + kind, input: of("team-a", " ", ""), answer: passing, want: []string{"containers[1]"}},
			scenario{name: "blank: in no namespace, in a " + kind, input: of("", " "), answer: passing, want: []string{"without a namespace"}},
			scenario{name: "blank: an image that begins so, in a " + kind, input: of("team-a", " a"), answer: denying, asked: []string{"[team-a] a"},
				want: []string{"is denied"}},
			scenario{name: "blank: a trigger sets the image of a " + kind, input: updating(of("team-a", "a"), template(" ")), answer: denying,
				asked: []string{"[team-a]a"}, want: []string{"image a is denied"}},
			scenario{name: "blank: an update takes the image from a " + kind, input: updating(of("team-a", " "), template("a")), answer: denying})
	}
	return append(all,
		scenario{name: "blank: a volume of a Deployment", answer: denying,
			input: kindReview("Deployment", "team-a", object{"spec": object{"template": object{"spec": object{
				"containers": containers(" "), "volumes": []any{object{"name": "v", "image": object{"reference": " "}}}}}}})},
		scenario{name: "blank: in a Pod", input: podReview("team-a", pod(" ")), answer: denying, asked: []string{"[team-a] "}, want: []string{"is denied"}},
		scenario{name: "blank: in a Pod, beside an image", input: podReview("team-a", pod(" ", "a")), answer: denying, asked: []string{"[team-a] ", "[team-a]a"},
			want: []string{"is denied", "image a is denied"}})
}

// parameters are exempt images, warnings and the name of the provider.
func parameters() []scenario {
	var all []scenario
	for image, exempt := range map[string]bool{
		"r.example.com/mirror/app:v1": true, "r.example.com/mirror/a/b@sha256:1": true, "k8s.gcr.io/pause:3": true,
		"r.example.com/mirror": false, "r.example.com/mirrored/app": false, "r.example.com.evil.org/mirror/app": false,
		"evil.org/r.example.com/mirror/app": false, "k8s.gcr.io/pause:31": false, "[team-b]r.example.com/mirror/app": false,
	} {
		s := scenario{name: "exempt: " + image,
			input: with(podReview("team-a", pod(image)), object{"exemptImages": []any{"r.example.com/mirror/*", "k8s.gcr.io/pause:3"}}), answer: denying}
		if !exempt {
			s.asked, s.want = []string{"[team-a]" + image}, []string{"nobody signed it"}
		}
		all = append(all, s)
	}
	exempt := object{"exemptImages": []any{"a", "m/*"}}
	nowhere := podReview("team-a", pod("a"))
	delete(nowhere["review"].(object), "namespace") //nolint:forcetypeassert // podReview made it
	warned := func(keys []string) (any, error) {
		return answers([]any{
			[]any{"[team-a]a", object{"isSuccess": true, "warning": "nobody signed it", "traceID": "4711"}}, []any{"[team-a]b", object{"isSuccess": true}},
			[]any{"[team-a]c", object{"isSuccess": false, "reason": "no", "warning": "not this one"}},
		}[:len(keys)], []any{}, ""), nil
	}
	return append(all,
		scenario{name: "some are exempt", input: with(podReview("team-a", pod("a", "m/a", "b")), exempt), answer: denying, asked: []string{"[team-a]b"},
			want: []string{"image b"}},
		scenario{name: "exempt without a namespace", input: with(podReview("", pod("a")), exempt), answer: passing, want: []string{"without a namespace"}},
		scenario{name: "exempt with a namespace that is missing", input: with(nowhere, exempt), answer: passing, want: []string{"without a namespace"}},
		scenario{name: "exempt beside what is malformed", input: with(podReview("team-a", object{"containers": []any{containers("a")[0], nil}}), exempt),
			answer: passing, want: []string{"containers[1]"}},
		scenario{name: "exempt images of null", input: with(podReview("team-a", pod("a")), object{"exemptImages": nil}), answer: denying,
			asked: []string{"[team-a]a"}, want: []string{"image a"}},
		scenario{name: "exempt images of a text", input: with(podReview("team-a", pod("a")), object{"exemptImages": "a"}), answer: denying,
			asked: []string{"[team-a]a"}, want: []string{"image a"}},
		scenario{name: "an image of null is never exempt",
			input:  with(podReview("team-a", object{"containers": []any{object{"image": nil}}}), object{"exemptImages": []any{nil}}),
			answer: passing, want: []string{"containers[0]"}},
		scenario{name: "an image of null beside another is never exempt",
			input: with(podReview("team-a", object{"containers": []any{object{"image": nil}, containers("a")[0]}}),
				object{"exemptImages": []any{nil, 7, []any{"b"}, object{}}}), answer: passing, want: []string{"containers[0]"}},
		scenario{name: "an image that is a list is never exempt",
			input: with(podReview("team-a", object{"containers": []any{object{"image": []any{"b"}}, containers("a")[0]}}),
				object{"exemptImages": []any{[]any{"b"}}}), answer: passing, want: []string{"containers[0]"}},
		scenario{name: "another provider", input: with(podReview("team-a", pod("a")), object{"provider": "another"}), answer: passing,
			want: []string{missingProvider}},
		scenario{name: "the provider by its name", input: with(podReview("team-a", pod("a")), object{"provider": "landwaiter-verdict"}), answer: passing,
			asked: []string{"[team-a]a"}},
		scenario{name: "warnings are not asked for", input: podReview("team-a", pod("a", "b")), answer: warned, asked: []string{"[team-a]a", "[team-a]b"}},
		scenario{name: "warnings are asked for", input: with(podReview("team-a", pod("a", "b")), object{"warnings": true}), answer: warned,
			asked: []string{"[team-a]a", "[team-a]b"},
			want:  []string{"image a is allowed in namespace team-a with a warning (traceID 4711): nobody signed it$"}},
		scenario{name: "warnings beside a denial", input: with(podReview("team-a", pod("a", "b", "c")), object{"warnings": true}), answer: warned,
			asked: []string{"[team-a]a", "[team-a]b", "[team-a]c"}, want: []string{"image a is allowed", "image c is denied"}},
		scenario{name: "warnings of what was there", input: with(updating(podReview("team-a", pod("a")), object{"spec": pod("a")}), object{"warnings": true}),
			answer: warned})
}

// audits are reviews of objects that exist, in which Gatekeeper has no operation.
func audits() []scenario {
	review := func(operation, parameters any) object {
		input := podReview("team-a", pod("a"))
		input["review"].(object)["operation"] = operation //nolint:forcetypeassert // podReview made it
		if parameters, ok := parameters.(object); ok {
			return with(input, parameters)
		}
		return input
	}
	named, missing := object{"auditProvider": auditProvider}, object{"auditProvider": "landwaiter-missing"}
	ofAudit, ofAdmission := []string{auditProvider + " [team-a]a"}, []string{"[team-a]a"}
	denied := []string{"image a is denied in namespace team-a: nobody signed it"}
	slow := says(answers([]any{}, []any{}, "undecided: image a could not be decided in namespace team-a: the registry is slow; try again (traceID 4711)"))
	return []scenario{
		{name: "audit: its own provider", input: review("", named), answer: denying, asked: ofAudit, want: denied},
		{name: "audit: its own provider passes", input: review("", named), answer: passing, asked: ofAudit},
		{name: "audit: its own provider fails, and nobody else is asked", input: review("", named), answer: slow, asked: ofAudit,
			want: []string{"undecided: image a could not be decided in namespace team-a: the registry is slow; try again (traceID 4711)$"}},
		{name: "audit: without a provider of its own", input: review("", nil), answer: denying, asked: ofAdmission, want: denied},
		{name: "audit: a provider that is not there", input: review("", missing), answer: denying, asked: ofAdmission, want: denied},
		{name: "audit: a provider that is not there, for an image that passes", input: review("", missing), answer: passing, asked: ofAdmission},
		{name: "audit: no provider is there", input: review("", object{"auditProvider": "landwaiter-missing", "provider": "another"}), answer: passing,
			want: []string{"undecided: image a could not be decided in namespace team-a: Gatekeeper got no answer from Landwaiter: " + missingProvider +
				"; try again$"}},
		{name: "audit: beside a provider of one's own that is not there", input: review("", object{"auditProvider": auditProvider, "provider": "another"}),
			answer: denying, asked: ofAudit, want: denied},
		{name: "audit: a review without the field is none", input: review(nil, named), answer: denying, asked: ofAdmission, want: denied},
		{name: "admission: CREATE never asks the audit's provider", input: review("CREATE", named), answer: passing, asked: ofAdmission},
		{name: "admission: CONNECT never asks the audit's provider", input: review("CONNECT", named), answer: denying, asked: ofAdmission, want: denied},
		{name: "admission: UPDATE never asks the audit's provider", input: with(updating(podReview("team-a", pod("a")), object{"spec": pod("b")}), named),
			answer: denying, asked: ofAdmission, want: denied},
		{name: "admission: its provider is not there, the audit's is", input: review("CREATE", object{"auditProvider": auditProvider, "provider": "another"}),
			answer: passing, want: []string{missingProvider}},
	}
}

// texts are what the person sees who is denied.
func texts() []scenario {
	three := podReview("team-a", pod("c", "a", "b"))
	audited := podReview("team-a", pod("c", "a", "b"))
	audited["review"].(object)["operation"] = "" //nolint:forcetypeassert // podReview made it
	asked := []string{"[team-a]a", "[team-a]b", "[team-a]c"}
	undecided := "image b is denied in namespace team-a: nobody signed it\nundecided: image a could not be decided in namespace team-a: the registry is slow; " +
		"try again (traceID 4711)"
	var long, longKeys, longWant []string
	for i := range 100 {
		long = append(long, fmt.Sprintf("r/%02d%s", i, strings.Repeat("x", 1000)))
		longKeys = append(longKeys, "[team-a]"+long[i])
		if i < 50 {
			longWant = append(longWant, "undecided: image "+long[i][:256]+" could not be decided in namespace team-a")
		}
	}
	return []scenario{
		{name: "text: the traceID once, in a line of its own at the end", input: three, answer: denying, asked: asked, want: []string{
			"image a is denied in namespace team-a: nobody signed it$", "image b is denied in namespace team-a: nobody signed it$",
			"image c is denied in namespace team-a: nobody signed it$", traceLine + "$"}},
		{name: "text: the traceID in an audit, which reports each line", input: audited, answer: denying, asked: asked, want: []string{
			"image a is denied in namespace team-a: nobody signed it$", "image b is denied in namespace team-a: nobody signed it$",
			"image c is denied in namespace team-a: nobody signed it (traceID 4711)$"}},
		{name: "text: refusals and errors", input: three, asked: asked,
			want: []string{"image a is denied in namespace team-a (traceID 4711): nobody signed it",
				"image b is denied in namespace team-a: no image name (traceID 4711)"},
			answer: says(
				answers([]any{[]any{"[team-a]a", object{"isSuccess": false, "reason": "nobody signed it", "traceID": "4711"}},
					[]any{"[team-a]c", object{"isSuccess": true}}},
					[]any{[]any{"[team-a]b", "no image name (traceID 4711)"}}, ""))},
		{name: "text: a refusal without a traceID", input: three, asked: asked, want: []string{"image a is denied in namespace team-a: nobody signed it$"},
			answer: says(answers([]any{[]any{"[team-a]a", object{"isSuccess": false, "reason": "nobody signed it"}}}, []any{}, ""))},
		{name: "text: an image that would begin a line of its own", input: podReview("team-a", pod("b\nimage é is allowed")),
			asked:  []string{"[team-a]b\nimage é is allowed"},
			answer: says(answers([]any{}, []any{[]any{"[team-a]b\nimage é is allowed", "no image name (traceID 4711)"}}, "")),
			want:   []string{`image "b\nimage \u00e9 is allowed" is denied in namespace team-a: no image name (traceID 4711)`}},
		{name: "text: try again once, a line for each image", input: three, answer: says(answers([]any{}, []any{}, undecided)), asked: asked,
			want: strings.Split(undecided, "\n")},
		{name: "text: what only Gatekeeper knows", input: three, answer: says(answers([]any{}, []any{}, "context deadline exceeded")), asked: asked,
			want: []string{"undecided: image a could not be decided in namespace team-a$", "undecided: image b could not be decided in namespace team-a$",
				"undecided: image c could not be decided in namespace team-a: Gatekeeper got no answer from Landwaiter: context deadline exceeded; try again$"}},
		{name: "text: too many and too long images", input: podReview("team-a", pod(long...)), answer: says(answers([]any{}, []any{}, "too large")), asked: longKeys,
			want: longWant},
	}
}

func TestTemplateAdmitsOnlyWhatIsProven(t *testing.T) {
	query, err := compile(t.Context(), rego.Module("template.rego", source(t, "verified-images")))
	require.NoError(t, err)
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			messages, asked, err := review(t.Context(), query, s.input, s.answer)
			require.NoError(t, s.failure(messages, asked, err))
			if len(messages) > 0 {
				require.LessOrEqual(t, strings.Count(strings.Join(messages, "\n"), "try again"), 1)
				for _, message := range messages {
					require.LessOrEqual(t, strings.Count(message, "traceID"), 1)
					require.NotContains(t, message, "\n")
				}
			}
		})
	}
}
