// Package precedence specifies which resources decide about an image, and what they decide. It
// is what docs/concepts/precedence.md says, as plain Go that imports nothing of Landwaiter: tests compare
// it with the engine.
package precedence

import (
	"slices"
	"strings"
)

// Judge returns the verdict on an image in a namespace, or in "" for a request without one, and
// whether an image that is allowed comes with a warning.
func (w World) Judge(namespace string, image Image) (outcome Outcome, warned bool) {
	chain, tenant := w.levels(namespace)
	if len(chain) > 0 {
		outcome = min(w.decide(chain, 0, image), w.mandatory(image, false))
	}
	if outcome == Allowed {
		return Allowed, w.mandatory(image, true) != Allowed || w.warned(chain, 0, image)
	}
	lifting := w.exceptions(namespace, tenant, chain, image, outcome)
	switch {
	case len(lifting) == 0:
		return outcome, false
	case slices.ContainsFunc(lifting, func(x Exception) bool { return x.OverrideMandatory }):
		return Allowed, true
	}
	outcome = w.mandatory(image, false)
	return outcome, outcome == Allowed
}

// levels returns the levels whose resources count in a namespace, the nearest first; none if
// that is not known.
func (w World) levels(namespace string) ([]Level, Tenant) {
	own := w.Namespaces[namespace]
	tenant, known := w.tenant(namespace)
	home, exists := w.Namespaces[tenant.HomeNamespace]
	holder, _ := w.tenant(tenant.HomeNamespace)
	switch {
	case namespace == "":
		return []Level{w.Cluster}, Tenant{}
	case !known, own.Unreadable:
		return nil, tenant
	case tenant.Name == "":
		return []Level{own, w.Cluster}, tenant
	case tenant.PolicyLevel == "Cluster":
		return []Level{w.Cluster}, tenant
	case !exists, home.Unreadable, home.Ending, holder.Name != tenant.Name:
		return nil, tenant
	case tenant.PolicyLevel == "Tenant", namespace == tenant.HomeNamespace:
		return []Level{home, w.Cluster}, tenant
	}
	return []Level{own, home, w.Cluster}, tenant
}

// tenant returns the Tenant of a namespace: the oldest that lists it, or else the one whose
// prefix it has. It is not known while a Tenant that cannot be read might list it.
func (w World) tenant(namespace string) (found Tenant, known bool) {
	known = true
	for _, t := range w.Tenants {
		switch {
		case t.Unreadable:
			known = false
		case t.HomeNamespace == namespace, slices.Contains(t.Namespaces, namespace):
			return t, true
		case found.Name == "" && t.Prefix != "" && strings.HasPrefix(namespace, t.Prefix):
			found = t
		}
	}
	return found, known
}

// decide judges an image by the levels of a chain from one on.
func (w World) decide(chain []Level, first int, image Image) Outcome {
	var warning []Policy
	for at := first; at < len(chain); at++ {
		if policies := chain[at].policies(false, false); len(policies) > 0 {
			return w.judge(policies, chain, first, at, image)
		}
		warning = append(warning, chain[at].policies(false, true)...)
	}
	switch {
	case slices.ContainsFunc(warning, func(p Policy) bool { return p.Broken }):
		return Denied
	case len(warning) > 0:
		return Allowed
	}
	matching := Requirement{AtLeast: 1}
	for _, v := range nearest(chain[first:]) {
		if matches(v.Images, image) {
			matching.AllOf = append(matching.AllOf, v.Name)
		}
	}
	return w.require(matching, chain, first, image)
}

// policies returns the policies of a level that are mandatory or not, and warn or deny.
func (l Level) policies(mandatory, warn bool) []Policy {
	return slices.DeleteFunc(slices.Clone(l.Policies), func(p Policy) bool { return p.Mandatory != mandatory || p.Warns != warn })
}

// judge judges an image by policies of the level at, with what applies from the level first on.
func (w World) judge(policies []Policy, chain []Level, first, at int, image Image) Outcome {
	if slices.ContainsFunc(policies, func(p Policy) bool { return p.Broken }) {
		return Denied
	}
	for _, p := range policies {
		for _, rule := range p.Rules {
			if matches(rule.Images, image) {
				return w.rule(rule, chain, first, image)
			}
		}
	}
	switch strictest(policies) {
	case "Allow":
		return Allowed
	case "Inherit":
		return w.decide(chain, at+1, image)
	}
	return Denied
}

// strictest returns the default of policies together.
func strictest(policies []Policy) (action string) {
	for _, p := range policies {
		if action == "" || action == "Allow" || p.Default == "Deny" {
			action = p.Default
		}
	}
	return action
}

func (w World) rule(rule Rule, chain []Level, first int, image Image) Outcome {
	outcome := Allowed
	if rule.Action == "Deny" {
		outcome = Denied
	}
	for _, r := range rule.Require {
		outcome = min(outcome, w.require(r, chain, first, image))
	}
	return outcome
}

// nearest returns the Verifiers of the nearest level that has any.
func nearest(chain []Level) []Verifier {
	for _, level := range chain {
		if len(level.Verifiers) > 0 {
			return level.Verifiers
		}
	}
	return nil
}

// require judges an image by one requirement.
func (w World) require(r Requirement, chain []Level, first int, image Image) Outcome {
	expression, unsure, found := r.Exists+r.ExistsNot != "", false, map[string][]string{}
	for _, v := range nearest(chain[first:]) {
		named := slices.Contains(slices.Concat(r.AnyOf, r.AllOf), v.Name)
		typed := slices.Contains(r.Types, v.Type)
		if !matches(v.Images, image) || !named && !typed && !expression {
			continue
		}
		if v.Broken && expression {
			return Denied
		}
		found[v.Name] = w.find(v, chain, first, image)
		unsure = unsure || slices.Contains(found[v.Name], "unreadable")
	}
	signed := func(name string) bool { return Requirement{AllOf: []string{name}}.holds(found, false) }
	switch {
	case !r.holds(found, true):
		return Denied
	case !r.holds(found, false), expression && unsure:
		return Undecided
	case r.Exists != "" && !signed(r.Exists), signed(r.ExistsNot):
		return Denied
	}
	return Allowed
}

// holds reports whether what Verifiers found is enough, or might be if all could be read.
func (r Requirement) holds(found map[string][]string, might bool) bool {
	signers, proven := map[string]bool{}, map[string]bool{}
	for verifier, findings := range found {
		for _, by := range findings {
			if by != "" && (might || by != "unreadable") {
				signers[by], proven[verifier] = true, true
			}
		}
	}
	missing := slices.ContainsFunc(r.AllOf, func(name string) bool { return !proven[name] })
	return !missing && (len(signers) >= r.AtLeast || signers["unreadable"])
}

// find returns what a Verifier finds with the Store of the nearest level from one on that has
// one for the host, or else with that of a nearer level, which then lends no evidence.
func (w World) find(v Verifier, chain []Level, first int, image Image) []string {
	evidence := ""
	for i := range chain {
		at := (first + i) % len(chain)
		if s := chain[at].Store; s != nil && (s.Host == "" || s.Host == image.Host) {
			if v.Broken = v.Broken || s.Broken; at >= first {
				evidence = s.Evidence
			}
			break
		}
	}
	if v.Broken {
		return nil
	}
	return w.Evidence[evidence][v.ID]
}

// mandatory judges an image by the mandatory policies that warn, or those that deny, each alone
// and with resources of the cluster.
func (w World) mandatory(image Image, warn bool) Outcome {
	outcome := Allowed
	for _, p := range w.Cluster.policies(true, warn) {
		outcome = min(outcome, w.judge([]Policy{p}, []Level{w.Cluster}, 0, 0, image))
	}
	return outcome
}

// warned reports whether policies that warn would not allow an image: those of the levels up to
// the one that decides, and of the levels to which that one leaves images.
func (w World) warned(chain []Level, first int, image Image) bool {
	for at := first; at < len(chain); at++ {
		warning := chain[at].policies(false, true)
		sound := slices.DeleteFunc(slices.Clone(warning), func(p Policy) bool { return p.Broken })
		if len(sound) < len(warning) || len(sound) > 0 && w.judge(sound, chain, first, at, image) != Allowed {
			return true
		}
		if policies := chain[at].policies(false, false); len(policies) > 0 {
			return strictest(policies) == "Inherit" && w.warned(chain, at+1, image)
		}
	}
	return false
}

// exceptions returns the exceptions that allow an image with some outcome, and break-glass.
func (w World) exceptions(namespace string, tenant Tenant, chain []Level, image Image, outcome Outcome) (found []Exception) {
	now := func(x Exception) bool { return !w.Now.Before(x.From) && w.Now.Before(x.Until) }
	if glass := w.Namespaces[namespace].BreakGlass; glass != nil && now(*glass) {
		found = append(found, *glass)
	}
	for _, x := range w.Cluster.Exceptions {
		if outcome == Undecided || namespace == "" || !now(x) || !matches(x.Images, image) {
			continue
		}
		if !x.Delegates && (x.covers(namespace, "") || slices.Contains(x.Namespaces, "*")) {
			found = append(found, x)
		}
		for _, level := range chain {
			if !x.Delegates || level.Name == "" || !x.covers(level.Name, tenant.Name) || !x.covers(namespace, tenant.Name) {
				continue
			}
			found = append(found, slices.DeleteFunc(slices.Clone(level.Exceptions), func(x Exception) bool { return !now(x) || !matches(x.Images, image) })...)
		}
	}
	return found
}

func (x Exception) covers(namespace, tenant string) bool {
	return slices.Contains(x.Namespaces, namespace) || tenant != "" && slices.Contains(x.Tenants, tenant)
}

// matches reports whether an image is on a list of names, patterns and digests.
func matches(list []string, image Image) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		prefix, wild := strings.CutSuffix(entry, "**")
		return entry == image.Name || wild && strings.HasPrefix(image.Name, prefix) || image.Digest != "" && entry == image.Name+"@"+image.Digest
	})
}
