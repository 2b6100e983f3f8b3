package scaffold

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// tenants checks the Tenants of one cluster against their objects in the tree. The caller reports
// a Tenant that is unreadable or unusable; wrong has the errors of resources.
func (c *checker) tenants(all *closure, wrong []string) {
	c.pieces(all)
	var tenants []*v1beta1.Tenant
	at, readable := map[string]string{}, true
	for _, o := range all.objects {
		if o.GroupVersionKind().Group != v1beta1.Group || o.GetKind() != v1beta1.KindTenant {
			continue
		}
		tenant := &v1beta1.Tenant{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, tenant); err != nil {
			readable = false
			continue
		}
		complete, err := onboard.Complete(tenant)
		if err != nil {
			readable = false
			continue
		}
		tenants, at[tenant.Name] = append(tenants, complete), c.tenantFile(o)
	}
	holders := resource.NewTenants(tenants).Labelled(all.labels())
	if readable { // otherwise, a namespace may belong to a Tenant that must be fixed first
		c.withoutTenant(all, holders)
		c.nowhere(all, holders)
	}
	c.rights(all, tenants, holders, at)
	c.unverified(all, tenants, holders)
	c.gate(all, tenants, holders)
	c.homes(all, tenants)
	c.teamsObjects(all, tenants, holders)
	for _, tenant := range tenants {
		mistaken := slices.ContainsFunc(wrong, func(message string) bool { // its objects are checked separately
			return strings.HasPrefix(message, v1beta1.KindTenant+" "+tenant.Name+":")
		})
		if c.settings != nil && !c.settings.Operator && !mistaken {
			c.unequipped(all, tenant, at[tenant.Name])
		}
	}
}

// tenantFile is the file with a Tenant, and not one that patches it.
func (c *checker) tenantFile(o applied) string {
	var written []string
	for _, name := range c.places[v1beta1.KindTenant+" "+o.GetName()] {
		if slices.ContainsFunc(TenantFiles(o.GetName()), func(pattern string) bool {
			matched, _ := path.Match(pattern, name)
			return matched
		}) {
			written = append(written, name)
		}
	}
	switch here := slices.IndexFunc(written, func(name string) bool { return within(name, o.folder) }); {
	case here >= 0:
		return written[here]
	case len(written) > 0:
		return written[0]
	}
	return c.of(o.folder, o.Unstructured)
}

// unequipped finds namespaces that a Tenant lists and that lack some of its objects, such as
// after tenant.yaml was edited.
func (c *checker) unequipped(all *closure, tenant *v1beta1.Tenant, at string) {
	expected, err := onboard.Objects(tenant, onboard.Options{ClusterRights: true, Constraints: true})
	if err != nil {
		return // reported by the caller
	}
	again := fmt.Sprintf("run landwaiter platform scaffold DIR %s again", tenant.Name)
	present := map[string]applied{}
	for _, o := range all.objects {
		present[o.GroupVersionKind().Group+" "+identity(o.Unstructured)] = o
	}
	lacks, has := map[string][]string{}, map[string]bool{}
	for _, o := range expected {
		namespace := o.GetNamespace()
		if o.GetKind() == "Namespace" {
			namespace = o.GetName()
		}
		key := o.GroupVersionKind().Group + " " + identity(o)
		there, ok := present[key]
		delete(present, key)
		switch {
		case !ok:
			lacks[namespace] = append(lacks[namespace], identity(o))
			continue
		case o.GetName() != onboard.RoleReferenceReader && !says(there.Object, o.Object): // the tree does not know Landwaiter's account
			c.find("TenantObjectDiffers", at, "Tenant %s: %s in %s is not what the Tenant stands for there: %s", tenant.Name, identity(o),
				there.folder, again)
		}
		has[namespace] = true
	}
	namesakes := fullest(tenant)
	for _, o := range present {
		if o.GetLabels()[v1beta1.LabelTenant] == tenant.Name && o.GetLabels()[v1beta1.LabelOwner] != "" &&
			namesakes[o.GetKind()+" "+o.GetName()] {
			c.find("TenantObjectDiffers", at, "Tenant %s: the Tenant does not stand for %s, which is in %s: %s", tenant.Name,
				identity(o.Unstructured), o.folder, again)
		}
	}
	for namespace, missing := range lacks {
		what := fmt.Sprintf("namespace %s lacks %s", namespace, strings.Join(missing, ", "))
		switch {
		case namespace == "":
			what = "the tree lacks " + strings.Join(missing, ", ")
		case !has[namespace]:
			what = fmt.Sprintf("namespace %s has no objects in the tree", namespace)
		}
		c.find("TenantObjectMissing", at, "Tenant %s: in %s, %s: %s", tenant.Name, all.name(), what, again)
	}
}

// says reports whether an object has every value of another one. It may have more, such as
// labels that the tree adds.
func says(o, wanted any) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		have, ok := o.(map[string]any)
		for name, value := range wanted {
			ok = ok && says(have[name], value)
		}
		return ok
	case nil:
		return o == nil
	}
	return equality.Semantic.DeepEqual(o, wanted)
}

// fullest returns kind and name of every object that a Tenant could have with more settings.
func fullest(tenant *v1beta1.Tenant) map[string]bool {
	more := tenant.DeepCopy()
	more.Spec.NamespacePrefix = cmp.Or(more.Spec.NamespacePrefix, tenant.Name+"-")
	more.Spec.Isolation.Network, more.Spec.Isolation.Registries = v1beta1.NetworkIsolationDeny, []string{"registry.example.com/"}
	people := []v1beta1.TenantSubject{{Kind: v1beta1.SubjectGroup, Name: "any"}}
	more.Spec.Access = v1beta1.TenantAccess{Admins: people, Developers: people, Viewers: people}
	if more.Spec.Reconciler == nil {
		more.Spec.Reconciler = &v1beta1.TenantReconciler{}
	}
	more.Spec.Reconciler.CreateNamespaces, more.Spec.Reconciler.Variables = true, map[string]v1beta1.Variable{"any": "any"}
	names := map[string]bool{}
	objects, err := onboard.Objects(more, onboard.Options{ClusterRights: true, Constraints: true})
	if err != nil {
		return names // reported by the caller
	}
	for _, o := range objects {
		names[o.GetKind()+" "+o.GetName()] = true
	}
	return names
}

// Edit adds an entry to a kustomization.yaml that people also edit.
type Edit struct {
	Path string
	// Resources and Patches are added to the lists of these names, unless they are present.
	Resources, Patches []string
	// Gone are entries of an earlier run that are removed from both lists.
	Gone []string
	// Initial is the text of a file that does not exist yet.
	Initial string
}

// apply returns the text with the entries. Everything else stays, including comments and
// order: it only extends the text, and never rewrites it from parsed data.
func (e Edit) apply(text string) (string, error) {
	var err error
	for _, name := range e.Resources {
		if text, err = addEntry(text, "resources", name, name); err != nil {
			return "", err
		}
	}
	for _, name := range e.Patches {
		if text, err = addEntry(text, "patches", "path: "+name, name); err != nil {
			return "", err
		}
	}
	for _, name := range e.Gone {
		if text, err = withoutEntry(text, "resources", name, name); err != nil {
			return "", err
		}
		if text, err = withoutEntry(text, "patches", "path: "+name, name); err != nil {
			return "", err
		}
	}
	return text, nil
}

// addEntry adds an entry at the end of a top-level list, unless the list has the value.
func addEntry(text, field, entry, value string) (string, error) {
	fields, at, err := fieldOf(text, field)
	if err != nil {
		return "", err
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if at < 0 {
		return text + field + ":\n- " + entry + "\n", nil
	}
	if has(fields[at+1], value) {
		return text, nil
	}
	lines := strings.SplitAfter(text, "\n")
	if line := lines[fields[at].Line-1]; line == field+": []\n" || fields[at+1].Tag == "!!null" && strings.TrimSpace(line) == field+":" {
		lines[fields[at].Line-1] = field + ":\n- " + entry + "\n"
		return strings.Join(lines, ""), nil
	}
	if fields[at+1].Kind != yaml.SequenceNode || len(fields[at+1].Content) == 0 || fields[at+1].Style&yaml.FlowStyle != 0 {
		return "", fmt.Errorf("%s is not a list with one line for each entry: write it so, or add %q to it", field, value)
	}
	last := fields[at+1].Content[len(fields[at+1].Content)-1].Line - 1
	indent := lines[last][:len(lines[last])-len(strings.TrimLeft(lines[last], " "))]
	// The last entry continues while lines are indented more than its dash.
	after := last + 1
	for i := after; i < len(lines) && (strings.HasPrefix(lines[i], indent+" ") || strings.TrimSpace(lines[i]) == ""); i++ {
		if strings.TrimSpace(lines[i]) != "" {
			after = i + 1
		}
	}
	return strings.Join(slices.Insert(lines, after, indent+"- "+entry+"\n"), ""), nil
}

// has reports whether a list has a text, or a mapping whose path it is.
func has(list *yaml.Node, value string) bool {
	return slices.ContainsFunc(list.Content, func(entry *yaml.Node) bool {
		return entry.Kind == yaml.ScalarNode && entry.Value == value || textOf(entry, "path") == value
	})
}
