package scaffold

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// pruneAnnotation on an object, with the value [pruneDisabled], keeps Flux from deleting the object
// when it is removed from Git.
const (
	pruneAnnotation = "kustomize.toolkit.fluxcd.io/prune"
	pruneDisabled   = "disabled"
)

// forceAnnotation on an object, with the value [forceEnabled], makes Flux delete and create the object if the API
// server refuses a change.
const (
	forceAnnotation = "kustomize.toolkit.fluxcd.io/force"
	forceEnabled    = "enabled"
)

// staysInCluster reports whether Flux never deletes an object of a Kustomization: because of an annotation or a label
// on the object or in spec.commonMetadata. The Kustomization may be nil.
func staysInCluster(o, by *unstructured.Unstructured) bool {
	sets := []map[string]string{o.GetAnnotations(), o.GetLabels()}
	if by != nil {
		for _, field := range []string{"annotations", "labels"} {
			common, _, _ := unstructured.NestedStringMap(by.Object, "spec", "commonMetadata", field)
			sets = append(sets, common)
		}
	}
	return slices.ContainsFunc(sets, func(set map[string]string) bool {
		return set[pruneAnnotation] == pruneDisabled || set["kustomize.toolkit.fluxcd.io/reconcile"] == pruneDisabled
	})
}

// KeepsTeams returns a [RefusedError] if the tree has the operator, and Flux would delete a team's
// objects in dir before the operator creates them again. With a team's Kustomization, Flux deletes
// everything that the Kustomization applied.
func (p Platform) KeepsTeams(dir string) error {
	_, known, err := ReadSettings(dir)
	if err != nil {
		return err
	}
	return p.handsOver(dir, "", func(o *unstructured.Unstructured) bool {
		return ofTeam(o, "") || !known && p.Layout != LayoutArc && isFlux(o, "Kustomization")
	})
}

// keepsObjects is [Platform.KeepsTeams] for one team.
func (team Team) keepsObjects(dir string, p Platform) error {
	name := team.Tenant.Name
	return p.handsOver(dir, name, func(o *unstructured.Unstructured) bool {
		return ofTeam(o, name) || p.Layout != LayoutArc && isFlux(o, "Kustomization") && o.GetName() == name
	})
}

// ofTeam reports whether the operator creates an object for a Tenant, or for any if the name is
// empty.
func ofTeam(o *unstructured.Unstructured, tenant string) bool {
	label := o.GetLabels()[v1beta1.LabelTenant]
	return label != "" && (tenant == "" || label == tenant) && o.GetKind() != v1beta1.KindTenant && o.GetKind() != "Secret"
}

// handsOver refuses a tree with the operator while the lists of dir apply objects for which leaves is
// true and that Flux would prune.
func (p Platform) handsOver(dir, tenant string, leaves func(*unstructured.Unstructured) bool) error {
	there, err := hasFolder(dir, p.listFolder())
	if !p.Operator || !there || err != nil {
		return err
	}
	c, err := newChecker(CheckOptions{})
	if err != nil {
		return err
	}
	if err := c.load(dir); err != nil {
		return err
	}
	c.inspect()
	var pruned, unclear []string
	found := false
	for _, place := range p.places() {
		folder := path.Join(p.listFolder(), place)
		list := c.kustomizationFile(folder)
		if list == "" {
			continue
		}
		b := c.build(folder)
		if b.failed {
			unclear = append(unclear, list)
		}
		objects := slices.DeleteFunc(slices.Clone(b.objects), func(o *unstructured.Unstructured) bool { return !leaves(o) })
		found = found || len(objects) > 0
		if slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return !staysInCluster(o, nil) }) {
			pruned = append(pruned, list)
		}
	}
	// The chart then contains the guardrails. Without them, teams could do more for a while.
	if list := c.kustomizationFile("infrastructure/guardrails"); found && tenant == "" && list != "" && !c.keeps(list) {
		pruned = append(pruned, list)
	}
	switch {
	case len(pruned) > 0:
		return &RefusedError{firstKeep(tenant, pruned)}
	case len(unclear) > 0:
		return &RefusedError{
			fmt.Sprintf("nothing was written: %s does not build, so it is unclear whether Flux would delete objects of teams before the operator "+
				"creates them: run landwaiter platform check %s", strings.Join(unclear, ", "), dir)}
	}
	return nil
}

// keeps reports whether a kustomization has the line that [firstKeep] requires.
func (c *checker) keeps(file string) bool {
	documents, err := parse(c.files[file])
	if err != nil || len(documents) == 0 {
		return false
	}
	return textAt(documents[0], "commonAnnotations", pruneAnnotation) == pruneDisabled ||
		textAt(documents[0], "commonLabels", pruneAnnotation) == pruneDisabled
}

// firstKeep explains how objects move from Flux to the operator without being deleted.
func firstKeep(tenant string, lists []string) string {
	whose := "teams have"
	if tenant != "" {
		whose = "Tenant " + tenant + " has"
	}
	return fmt.Sprintf("nothing was written: with operator=true, Flux deletes the objects that %s in the tree before the operator creates "+
		"them, and with a team's Kustomization everything that it applied. First keep Flux from it: append the line\ncommonAnnotations: {%s: "+
		"%s}\nto %s, merge, wait until every cluster has applied it, and run this again",
		whose, pruneAnnotation, pruneDisabled, strings.Join(lists, ", "))
}
