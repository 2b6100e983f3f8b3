package scaffold

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/constraint"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/workload"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// TeamFile names the Tenant of a team's own repository: its namespaces, and the account that applies it.
const TeamFile = ".landwaiter-team.yaml"

// teamFile returns the [TeamFile] of a Tenant.
func teamFile(tenant *v1beta1.Tenant) string {
	spec := object{"homeNamespace": tenant.Spec.HomeNamespace}
	if len(tenant.Spec.Namespaces) > 0 {
		spec["namespaces"] = tenant.Spec.Namespaces
	}
	if prefix := tenant.Spec.NamespacePrefix; prefix != "" {
		spec["namespacePrefix"] = prefix
	}
	if account := onboard.Account(tenant); account != "" {
		spec["reconciler"] = object{"serviceAccount": account}
	}
	return document("What the platform lets this team use. landwaiter platform check holds the repository to it.",
		object{"apiVersion": v1beta1.GroupVersion.String(), "kind": v1beta1.KindTenant, "metadata": object{"name": tenant.Name}, "spec": spec})
}

// team reads the [TeamFile] of a team's own repository; it returns nil if there is none.
func (c *checker) team() *v1beta1.Tenant {
	text, ok := c.files[TeamFile]
	if !ok {
		return nil
	}
	tenant := &v1beta1.Tenant{}
	err := yaml.UnmarshalStrict(text, tenant)
	if err == nil && (tenant.Name == "" || tenant.Spec.HomeNamespace == "") {
		err = fmt.Errorf("metadata.name or spec.homeNamespace is missing")
	}
	if err != nil {
		c.find("SettingsInvalid", TeamFile, "it names no Tenant: %v: run landwaiter platform scaffold with --own again", err)
		return nil
	}
	return tenant
}

// teamRepository checks the build of each folder of a team's own repository, unless another one includes the folder:
// the platform's repository determines where Flux applies them.
func (c *checker) teamRepository(ctx context.Context, folders []string) error {
	team := c.team()
	included := c.included(folders)
	whole := slices.DeleteFunc(slices.Clone(folders), func(folder string) bool {
		return included[folder] || !c.buildable(folder) || c.build(folder).failed
	})
	for _, folder := range whole {
		objects := from(folder, c.build(folder).objects)
		for _, o := range objects {
			switch _, flux := acts(o.Unstructured); {
			case team != nil:
				c.actsAs(o, team)
				c.placed(o, team)
				c.refused(o, team, objects)
				c.leads(o, team, whole)
			case flux && c.files[TeamFile] == nil:
				c.report(resource.Note, "TeamUnknown", ".", "there is no %s, so nobody checked whether the team may use these namespaces and "+
					"accounts: platform scaffold --own writes it, in the layouts flux and groups", TeamFile)
			}
		}
		others := slices.DeleteFunc(slices.Clone(whole), func(other string) bool { return other == folder })
		if err := c.partial(ctx, folder, inNamespace(objects, team), others); err != nil {
			return err
		}
	}
	return nil
}

// inNamespace gives resources without a namespace the one in which the platform's Kustomization may put them: it does
// so for a Tenant with one namespace. If the Tenant is unknown, so is the namespace.
func inNamespace(objects []applied, team *v1beta1.Tenant) []applied {
	namespace := "default"
	if team != nil {
		namespace = team.Spec.HomeNamespace
		if len(namespacesOf(team)) > 1 || team.Spec.NamespacePrefix != "" {
			return objects
		}
	}
	placed := slices.Clone(objects)
	for i, o := range placed {
		if kind, ours := v1beta1.KindNamed(o.GetKind()); ours && isResource(o.Unstructured) && kind.Namespaced && o.GetNamespace() == "" {
			placed[i].Unstructured = o.DeepCopy()
			placed[i].SetNamespace(namespace)
		}
	}
	return placed
}

// included returns the folders that kustomizations of others include.
func (c *checker) included(folders []string) map[string]bool {
	found := map[string]bool{}
	for _, folder := range folders {
		var k types.Kustomization
		if file := c.kustomizationFile(folder); c.bad[file] || k.Unmarshal(c.files[file]) != nil {
			continue
		}
		for _, name := range references(k) {
			found[path.Join(folder, name)] = true
		}
	}
	return found
}

// partial lets the caller check the resources of a build. Missing references may be in the cluster, unless the
// build of another folder has them: then this one was forgotten.
func (c *checker) partial(ctx context.Context, folder string, objects []applied, others []string) error {
	all := closure{objects: objects}
	if c.options.Resources == nil || !slices.ContainsFunc(objects, func(o applied) bool { return isResource(o.Unstructured) }) {
		return nil
	}
	text, err := all.text(nil)
	if err != nil {
		return err
	}
	found, err := c.options.Resources(ctx, text, false)
	if err != nil {
		return fmt.Errorf("check the resources of %s: %w", folder, err)
	}
	for _, f := range found {
		at := cmp.Or(c.where(objects, f.Message), c.at(folder))
		if has := c.buildWith(others, f); has != "" {
			c.find("ResourceInvalid", at, "%s: %s; %s has it", folder, f.Message, has)
			continue
		}
		c.report(f.Severity, f.ID, at, "%s", f.Message)
	}
	return nil
}

// buildWith returns the first of some folders whose build has the missing object of a finding, "" if
// none has.
func (c *checker) buildWith(folders []string, f resource.Finding) string {
	for _, folder := range folders {
		for _, o := range c.build(folder).objects {
			_, rest, named := strings.Cut(f.Message, " "+o.GetKind()+" "+o.GetName())
			if f.ID == MissingID && isResource(o) && named && strings.IndexAny(rest+" ", " ,;:") == 0 {
				return folder
			}
		}
	}
	return ""
}

// acts reports whether an object of Flux uses an account, and returns it.
func acts(o *unstructured.Unstructured) (account string, ok bool) {
	account, _, _ = unstructured.NestedString(o.Object, "spec", "serviceAccountName")
	return account, isFlux(o, "Kustomization") || isFlux(o, "HelmRelease")
}

// accountMissing finds an object of Flux that names no account.
func (c *checker) accountMissing(o applied) {
	if account, ok := acts(o.Unstructured); ok && account == "" {
		c.find("AccountMissing", c.of(o.folder, o.Unstructured), "%s: spec.serviceAccountName is missing, so Flux acts as the account default, "+
			"which has no permissions: name the account that it acts as", identity(o.Unstructured))
	}
}

// actsAs finds an object of a team that uses no account, or one other than the team's, in the home namespace, where a
// guardrail refuses it.
func (c *checker) actsAs(o applied, team *v1beta1.Tenant) {
	c.accountMissing(o)
	account, ok := acts(o.Unstructured)
	if !ok || account == "" || o.GetNamespace() != "" && o.GetNamespace() != team.Spec.HomeNamespace {
		return
	}
	own := accountIn(team)
	if account != own {
		c.find("AccountForeign", c.of(o.folder, o.Unstructured), "%s: spec.serviceAccountName is %s, and the cluster lets Tenant %s act as %s "+
			"alone: write that name", identity(o.Unstructured), account, team.Name, own)
	}
	if _, elsewhere, _ := unstructured.NestedMap(o.Object, "spec", "kubeConfig"); elsewhere {
		c.find("AccountForeign", c.of(o.folder, o.Unstructured), "%s: spec.kubeConfig is for another cluster, and the cluster refuses it in "+
			"the home namespace of Tenant %s: remove it", identity(o.Unstructured), team.Name)
	}
	c.decrypts(o, team)
}

// decrypts finds a Kustomization of a team that decrypts with Flux's own identity, which may decrypt others' secrets.
func (c *checker) decrypts(o applied, team *v1beta1.Tenant) {
	decryption, found, _ := unstructured.NestedMap(o.Object, "spec", "decryption")
	secret, _, _ := unstructured.NestedString(decryption, "secretRef", "name")
	if found && secret == "" && decryption["serviceAccountName"] != accountIn(team) {
		c.find("AccountForeign", c.of(o.folder, o.Unstructured), "%s decrypts with the cloud identity of Flux itself: name a Secret in "+
			"spec.decryption.secretRef, or set spec.decryption.serviceAccountName to %s", identity(o.Unstructured), accountIn(team))
	}
}

// refused finds objects that a cluster does not let a team write into its own namespaces.
func (c *checker) refused(o applied, team *v1beta1.Tenant, objects []applied) {
	at, id := c.of(o.folder, o.Unstructured), identity(o.Unstructured)
	binding, binds := bindingOf(o.Unstructured)
	runs := false
	if typed, err := c.scheme.New(o.GroupVersionKind()); err == nil {
		_, runs = workload.Of(typed)
	}
	switch {
	case binds && (o.GetKind() == "ClusterRoleBinding" || (&closure{objects: objects}).mighty(binding)):
		c.find("ReachTooFar", at, "%s gives %s, which the account of Tenant %s may not: bind a smaller role in a namespace, or ask the platform",
			id, given(binding), team.Name)
	case o.GetKind() == "Namespace" && constraint.Ignored(o.GetLabels()):
		c.find("NamespaceIgnored", at, "%s has the label %s, which only the platform may set: remove the label", id,
			v1beta1.LabelGatekeeperIgnore)
	case runs && o.GetNamespace() == team.Spec.HomeNamespace && workloads(team) != team.Spec.HomeNamespace:
		c.find("NamespaceForeign", at, "%s is in the home namespace, which keeps no workloads: put it into another namespace of Tenant %s",
			id, team.Name)
	}
}

// leads finds objects of Flux with a missing target: a folder that the team's repository does not have, or a source
// that no folder has and that the platform may have.
func (c *checker) leads(o applied, team *v1beta1.Tenant, folders []string) {
	if _, ok := acts(o.Unstructured); !ok {
		return
	}
	at, id := c.of(o.folder, o.Unstructured), identity(o.Unstructured)
	for _, fields := range sourceFields() {
		kind, name, _ := reference(o.Unstructured, fields...)
		own := kind == "GitRepository" && name == team.Name
		there := slices.ContainsFunc(folders, func(folder string) bool {
			return slices.ContainsFunc(c.build(folder).objects, func(s *unstructured.Unstructured) bool {
				return s.GetKind() == kind && s.GetName() == name
			})
		})
		switch folder := folderOf(o.Unstructured); {
		case name == "" || strings.Contains(name+folder, "${"):
		case own && isFlux(o.Unstructured, "Kustomization") && !c.isFolder(folder):
			c.find("PathMissing", at, "%s: spec.path %s %s", id, textIn(o.Object, "spec", "path"), c.notThere(folder, ""))
		case !own && !there:
			c.report(resource.Note, "SourceMissing", at, "%s: %s names %s %s, which no folder of this repository has: correct the name, or make "+
				"sure that the platform has it", id, strings.Join(fields, "."), kind, name)
		}
	}
}

// accountIn returns the account that Flux may use in the home namespace of a Tenant.
func accountIn(tenant *v1beta1.Tenant) string { return cmp.Or(onboard.Account(tenant), tenant.Name) }

// placed finds an object in a namespace of others, or that leads Flux there.
func (c *checker) placed(o applied, team *v1beta1.Tenant) {
	fields := [][]string{{"metadata", "namespace"}}
	if _, ok := acts(o.Unstructured); ok {
		for _, source := range sourceFields() {
			fields = append(fields, append(source, "namespace"))
		}
		c.outside(o, team, targetFields())
	}
	if o.GetKind() == "Namespace" && o.GroupVersionKind().Group == "" {
		fields = [][]string{{"metadata", "name"}}
	}
	c.outside(o, team, fields)
}

// targetFields are the fields of Flux objects with the namespace to which they write.
func targetFields() [][]string {
	return [][]string{{"spec", "targetNamespace"}, {"spec", "storageNamespace"}}
}

// outside finds fields with a namespace outside of a Tenant.
func (c *checker) outside(o applied, team *v1beta1.Tenant, fields [][]string) {
	prefix := team.Spec.NamespacePrefix
	for _, field := range fields {
		if namespace, _, _ := unstructured.NestedString(o.Object, field...); namespace != "" && !slices.Contains(namespacesOf(team), namespace) &&
			(prefix == "" || !strings.HasPrefix(namespace, prefix)) {
			c.find("NamespaceForeign", c.of(o.folder, o.Unstructured), "%s: %s is %s, which is no namespace of Tenant %s, so the cluster refuses "+
				"it: use one of the team's, or ask the platform to add it to the Tenant", identity(o.Unstructured), strings.Join(field, "."),
				namespace, team.Name)
		}
	}
}

// teamsObjects finds objects of Flux in the tree for teams that lead out of their namespaces, and those that apply
// the repository of a Tenant from elsewhere, with an account other than the Tenant's.
func (c *checker) teamsObjects(all *closure, tenants []*v1beta1.Tenant, holders *resource.Tenants) {
	whose := map[string]*v1beta1.Tenant{} // sources by identity, with the repository of a Tenant
	for _, o := range all.objects {
		url, _, _ := unstructured.NestedString(o.Object, "spec", "url")
		if prefixesFor(o.Unstructured) == nil || url == "" || (source{o.GetKind(), o.GetNamespace(), o.GetName()}) == all.source {
			continue
		}
		for _, tenant := range tenants {
			if r := tenant.Spec.Reconciler; r != nil && r.Source != nil && placeOf(r.Source.URL) == placeOf(url) {
				whose[identity(o.Unstructured)] = tenant
			}
		}
	}
	c.secretRefs(all)
	for _, o := range all.objects {
		if _, ok := acts(o.Unstructured); !ok {
			continue
		}
		holder := holders.Holder(o.GetNamespace())
		if holder != nil {
			c.outside(o, holder, targetFields())
			c.decrypts(o, holder)
		}
		for _, fields := range sourceFields() {
			kind, name, namespace := reference(o.Unstructured, fields...)
			if tenant := whose[kind+" "+namespace+"/"+name]; tenant != nil && holder == nil {
				c.find("SourceForeign", c.of(o.folder, o.Unstructured), "%s: %s names %s %s, which has the repository of Tenant %s, so whoever "+
					"writes there acts as more than the Tenant's account %s: remove it, or apply it in namespace %s as %[7]s",
					identity(o.Unstructured), strings.Join(fields, "."), kind, name, tenant.Name, accountIn(tenant), tenant.Spec.HomeNamespace)
			}
		}
	}
}

// secretRefs finds sources whose Secret is not in the tree, and has a name similar to one that is.
func (c *checker) secretRefs(all *closure) {
	secrets := map[string][]string{}
	for _, o := range all.objects {
		if o.GetKind() == "Secret" {
			secrets[o.GetNamespace()] = append(secrets[o.GetNamespace()], o.GetName())
		}
	}
	for _, o := range all.objects {
		name, there := textIn(o.Object, "spec", "secretRef", "name"), secrets[o.GetNamespace()]
		if prefixesFor(o.Unstructured) == nil || name == "" || slices.Contains(there, name) || c.options.Near == nil {
			continue
		}
		if near, ok := c.options.Near(name, there); ok {
			c.report(resource.Warning, "SecretMissing", c.of(o.folder, o.Unstructured),
				"%s: spec.secretRef names Secret %s, which is not in the tree: is %s meant?", identity(o.Unstructured), name, near)
		}
	}
}

// placeOf returns host and path of the URL of a repository, which are the same for HTTPS and SSH.
func placeOf(url string) string {
	_, rest, _ := strings.Cut(strings.ToLower(url), "://")
	host, folders, _ := strings.Cut(rest, "/")
	host = host[strings.LastIndex(host, "@")+1:]
	host, _, _ = strings.Cut(strings.TrimPrefix(host, "ssh."), ":")
	return host + "/" + strings.TrimSuffix(strings.Trim(folders, "/"), ".git")
}

// homes finds objects of Flux in the home namespaces of Tenants that use an account without permissions.
func (c *checker) homes(all *closure, tenants []*v1beta1.Tenant) {
	accounts := map[string]bool{}
	for _, o := range all.objects {
		if o.GetKind() == "ServiceAccount" {
			accounts[o.GetNamespace()+"/"+o.GetName()] = true
		}
	}
	for _, o := range all.objects {
		account, ok := acts(o.Unstructured)
		i := slices.IndexFunc(tenants, func(t *v1beta1.Tenant) bool { return t.Spec.HomeNamespace == o.GetNamespace() })
		if !ok || account == "" || i < 0 || account == accountIn(tenants[i]) || account != "default" && accounts[o.GetNamespace()+"/"+account] {
			continue
		}
		c.find("AccountForeign", c.of(o.folder, o.Unstructured), "%s: spec.serviceAccountName is %s, which has no permissions in the home "+
			"namespace of Tenant %s: name %s, the account of the Tenant", identity(o.Unstructured), account, tenants[i].Name, accountIn(tenants[i]))
	}
}
