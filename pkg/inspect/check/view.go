package check

import (
	"cmp"
	"encoding/csv"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/constraint"
)

// view is an inventory with data that the rules share.
type view struct {
	*Inventory
	hooks []hook
	serve *program
	// refusals are why the schemas of this version refuse resources.
	refusals func() map[policy.ObjectRef]error
}

// hook is one webhook of Gatekeeper. A mutating one only has the common fields.
type hook struct {
	target
	mutating bool
	label    bool // it protects the label that exempts a namespace
	index    int
	webhook  admissionv1.ValidatingWebhook
}

func newView(i *Inventory) *view {
	v := &view{Inventory: i, serve: serveOf(i.Landwaiters)}
	for _, c := range i.Validating {
		for n, w := range c.Webhooks {
			path := pathOf(w.ClientConfig)
			if label := strings.HasSuffix(path, "/v1/admitlabel"); isGatekeepers(w.Name, c.Labels) &&
				(label || strings.HasSuffix(path, "/v1/admit")) {
				v.hooks = append(v.hooks, hook{builtin("ValidatingWebhookConfiguration", "", c.Name), false, label, n, w})
			}
		}
	}
	for _, c := range i.Mutating {
		for n, w := range c.Webhooks {
			if isGatekeepers(w.Name, c.Labels) && strings.HasSuffix(pathOf(w.ClientConfig), "/v1/mutate") {
				v.hooks = append(v.hooks, hook{builtin("MutatingWebhookConfiguration", "", c.Name), true, false, n, admissionv1.ValidatingWebhook{
					Name: w.Name, ClientConfig: w.ClientConfig, FailurePolicy: w.FailurePolicy, TimeoutSeconds: w.TimeoutSeconds,
					NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, MatchConditions: w.MatchConditions, Rules: w.Rules}})
			}
		}
	}
	return v
}

// isGatekeepers reports whether a webhook is Gatekeeper's, from any distribution: the names
// of its configuration and Service differ, but these do not.
func isGatekeepers(name string, labels map[string]string) bool {
	return strings.HasSuffix(name, ".gatekeeper.sh") || labels["gatekeeper.sh/system"] == "yes"
}

func pathOf(c admissionv1.WebhookClientConfig) string {
	switch {
	case c.Service != nil && c.Service.Path != nil:
		return *c.Service.Path
	case c.URL != nil:
		path, _, _ := strings.Cut(*c.URL, "?")
		return path
	}
	return ""
}

// gatekeeperNamespace returns the namespace of the Service that the API server calls.
func (v *view) gatekeeperNamespace() string {
	for _, h := range v.hooks {
		if h.webhook.ClientConfig.Service != nil {
			return h.webhook.ClientConfig.Service.Namespace
		}
	}
	return v.Gatekeeper
}

// asked returns the hooks through which images are decided: the validating ones, and the
// mutating ones if tags are pinned.
func (v *view) asked() []hook {
	pins := slices.ContainsFunc(v.ours(), func(p provider) bool { return p.mutates() })
	return slices.DeleteFunc(slices.Clone(v.hooks), func(h hook) bool { return h.label || h.mutating && !pins })
}

// exempt returns the namespaces that may be exempt.
func (v *view) exempt() []string {
	all := append([]string{"kube-system", "kube-node-lease", v.Namespace, v.gatekeeperNamespace()}, v.Exempt...)
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(name string) bool { return name == "" })
}

// beyond returns the namespaces and patterns of a list that may not be exempt.
func (v *view) beyond(patterns []string) []string {
	allowed := v.exempt()
	return slices.DeleteFunc(slices.Clone(patterns), func(p string) bool { return slices.Contains(allowed, p) || p == "kube-*" })
}

// unmatched returns the namespaces that a selector excludes although they may not be exempt,
// apart from those with the exempting label.
func (v *view) unmatched(selector *metav1.LabelSelector) []string {
	if selector == nil {
		return nil
	}
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil // the API server refuses such selectors
	}
	var names []string
	for _, n := range v.Namespaces {
		if constraint.Ignored(n.Labels) {
			continue
		}
		if !compiled.Matches(withName(n.Labels, n.Name)) && !slices.Contains(v.exempt(), n.Name) {
			names = append(names, n.Name)
		}
	}
	return names
}

// leftOut returns the namespaces that may be exempt and that a selector excludes, by their
// names if they do not exist.
func (v *view) leftOut(selector *metav1.LabelSelector) []string {
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(v.exempt(), func(name string) bool {
		var has labels.Set
		for _, n := range v.Namespaces {
			if n.Name == name {
				has = n.Labels
			}
		}
		return compiled.Matches(withName(has, name))
	})
}

// withName adds the label by which the API server names each namespace.
func withName(has labels.Set, name string) labels.Set {
	return labels.Merge(has, labels.Set{corev1.LabelMetadataName: name})
}

// heeds reports whether a selector uses a label.
func heeds(selector *metav1.LabelSelector, label string) bool {
	return slices.ContainsFunc(selector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return r.Key == label })
}

// program is a container of a Deployment, with its arguments.
type program struct {
	target
	managed   string // by which tool
	version   string
	account   string
	replicas  int32
	ready     int32 // if known
	known     bool  // whether a controller has said how many replicas are ready
	container int
	args      []string
}

// programs returns the containers of Deployments.
func programs(deployments []appsv1.Deployment) []*program {
	var all []*program
	for _, d := range deployments {
		replicas := int32(1)
		if d.Spec.Replicas != nil {
			replicas = *d.Spec.Replicas
		}
		for n, c := range d.Spec.Template.Spec.Containers {
			all = append(all,
				&program{builtin("Deployment", d.Namespace, d.Name), d.Labels["app.kubernetes.io/managed-by"], d.Labels["app.kubernetes.io/version"],
					cmp.Or(d.Spec.Template.Spec.ServiceAccountName, "default"), replicas, d.Status.ReadyReplicas, d.Status.ObservedGeneration > 0, n,
					slices.Concat(c.Command, c.Args)[len(c.Command):]})
		}
	}
	slices.SortFunc(all, func(a, b *program) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// serveOf returns the container that answers Gatekeeper, nil if there is none.
func serveOf(deployments []appsv1.Deployment) *program {
	for _, p := range programs(deployments) {
		if p.runs("serve") {
			return p
		}
	}
	return nil
}

// runs reports whether a program is started with a command, before or after its flags.
func (p *program) runs(command string) bool { return slices.Contains(p.args, command) }

// flag is one use of a flag among arguments: the last of its words, which has the value.
type flag struct {
	index int
	value string
	apart bool // its name is the previous word
}

// flags returns the uses of a flag, in the forms --name=value, --name value and --name. A missing
// program has none.
func (p *program) flags(name string) []flag {
	if p == nil {
		return nil
	}
	var found []flag
	for i, arg := range p.args {
		bare := strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-")
		if bare == arg {
			continue
		}
		key, value, given := strings.Cut(bare, "=")
		if key != name {
			continue
		}
		switch {
		case given:
			found = append(found, flag{i, value, false})
		case i+1 < len(p.args) && !strings.HasPrefix(p.args[i+1], "-"):
			found = append(found, flag{i + 1, p.args[i+1], true})
		default:
			found = append(found, flag{i, "true", false})
		}
	}
	return found
}

// last returns the effective value of a flag, or the default.
func (p *program) last(name, without string) string {
	if all := p.flags(name); len(all) > 0 {
		return all[len(all)-1].value
	}
	return without
}

// named returns the effective value of a flag with named values, such as --timeout
// verify=2s,mutate=1s, or the default.
func (p *program) named(flag, name, without string) string {
	for _, use := range p.flags(flag) {
		parts, err := csv.NewReader(strings.NewReader(use.value)).Read() // as the program reads it
		if err != nil {
			continue // the program does not start
		}
		for _, one := range parts {
			if value, ok := strings.CutPrefix(one, name+"="); ok {
				without = value
			}
		}
	}
	return without
}

// set returns the command that sets a flag, wherever it is among the arguments.
func (p *program) set(name, value string) string {
	uses := p.flags(name)
	if len(uses) == 0 {
		return p.patch(p.added("--" + name + "=" + value))
	}
	var operations []operation
	for _, use := range uses {
		arg := "--" + name + "=" + value
		if use.apart {
			arg = value
		}
		operations = append(operations, p.inPlace(use.index, arg)...)
	}
	return p.patch(operations...)
}

// path is the path of the arguments, in a JSON patch.
func (p *program) path() string {
	return "/spec/template/spec/containers/" + strconv.Itoa(p.container) + "/args"
}

// added returns the operation that appends an argument.
func (p *program) added(arg string) operation {
	if len(p.args) == 0 {
		return operation{"add", p.path(), []string{arg}}
	}
	return operation{"add", p.path() + "/-", arg}
}

// inPlace returns the operations that replace one argument, unless it has changed. Indexes
// stay, so commands for several findings about one Deployment can be run in any order.
func (p *program) inPlace(index int, arg string) []operation {
	at := p.path() + "/" + strconv.Itoa(index)
	return []operation{{"test", at, p.args[index]}, {"replace", at, arg}}
}
