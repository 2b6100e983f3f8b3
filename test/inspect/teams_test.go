//go:build e2e

package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// secretWord is in every name of the second team: the first one must never see it.
const secretWord = "zebra"

// teams are two teams and a cluster admin. Each team has one namespace.
type teams struct {
	*installation
	iris, irisWeb, zebra, zebraWeb string

	admin, dev, zebraAdmin, clara person
	// said is everything that a person of the first team was told.
	said map[string]string
	// dir has the resources that people write.
	dir string
}

// hire makes two teams, as the admin guide says, with names that no other test has.
func (w *installation) hire(t *testing.T) *teams {
	t.Helper()
	s := &teams{installation: w, iris: w.fresh("iris"), zebra: w.fresh(secretWord), said: map[string]string{}, dir: t.TempDir()}
	s.irisWeb, s.zebraWeb = s.iris+"-web", s.zebra+"-web"
	administrator := caller(t, w.Kubeconfig()).landwaiter
	for team, namespace := range map[string]string{s.iris: s.irisWeb, s.zebra: s.zebraWeb} {
		administrator.Must(t, "tenant", "add", "--wait", team, "--set", "namespaces="+namespace, "--set", "access.admins="+team+"-admins", "--set",
			"access.developers="+team+"-devs")
	}
	for name, role := range map[string]string{"platform": "landwaiter-cluster-admin", "platform-reads": "landwaiter-reader"} {
		suite.Apply(t, w.Cluster,
			fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: %s}, roleRef: {apiGroup: rbac.authorization.k8s.io, "+
				"kind: ClusterRole, name: %s}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: platform}]}", name, role))
	}
	s.admin = as(t, w.Cluster, "ada", s.irisWeb, s.iris+"-admins")
	s.dev = as(t, w.Cluster, "dan", s.irisWeb, s.iris+"-devs")
	s.zebraAdmin = as(t, w.Cluster, "rita", s.zebraWeb, s.zebra+"-admins")
	s.clara = as(t, w.Cluster, "clara", "default", "platform")
	return s
}

// asks has a person of the first team call a program. What it prints is kept for
// [teams.said].
func (w *teams) asks(t *testing.T, program suite.Program, args ...string) suite.Result {
	t.Helper()
	r := program.Run(t, "", args...)
	w.said[fmt.Sprintf("%s %s %v (%d)", filepath.Base(program.Kubeconfig), filepath.Base(program.Path), args, len(w.said))] = r.Stdout + r.Stderr
	return r
}

// status is the part of status -o json that these tests read.
type status struct {
	Namespaces []struct {
		Namespace string
		Denied    []struct {
			Image, Reason, Remediation, Command, Last, TraceID string
			Count                                              int
			Workloads                                          []string
		}
	}
	NotShown []string
}

// denials waits until status of a person says that an image was denied.
func (w *teams) denials(t *testing.T, who person, image string, ok func(status) bool) status {
	t.Helper()
	var found status
	w.eventually(t, func(context.Context) error {
		r := w.asks(t, who.landwaiter, "status", "-o", "json")
		found = status{}
		if err := json.Unmarshal([]byte(r.Stdout), &found); err != nil {
			return fmt.Errorf("read %s%s: %w", r.Stdout, r.Stderr, err)
		}
		for _, n := range found.Namespaces {
			for _, d := range n.Denied {
				if strings.Contains(d.Image, strings.TrimSuffix(image, ":v1")) && ok(found) {
					return nil
				}
			}
		}
		return fmt.Errorf("status says nothing of %s: %s%s", image, r.Stdout, r.Stderr)
	})
	return found
}
