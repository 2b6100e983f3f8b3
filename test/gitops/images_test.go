//go:build nightly

package gitops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// Flux applies the sample of the library from a team's repository once the platform has added the piece. The
// kinds have no controller here.
func TestImageAutomationComesFromATeamsRepositoryWithItsPieceAlone(t *testing.T) {
	ofTeams.alone(t)
	w := controllers(t)
	for kind, plural := range map[string]string{"ImageRepository": "imagerepositories", "ImagePolicy": "imagepolicies",
		"ImageUpdateAutomation": "imageupdateautomations"} {
		w.apply(t,
			suite.Object("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %[2]s.image.toolkit.fluxcd.io}, spec: {group: "+
				"image.toolkit.fluxcd.io, scope: Namespaced, names: {kind: %[1]s, listKind: %[1]sList, plural: %[2]s, singular: %[3]s}, "+
				"versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}",
				kind, plural,
				strings.ToLower(kind)))
	}
	name := fresh("images-")
	team := w.team(t, name)
	sample, err := os.ReadFile(filepath.Join(suite.Root, "library/samples/flux-image-automation.yaml"))
	require.NoError(t, err)
	var documents []string
	for _, document := range strings.Split(string(sample), "\n---\n") {
		if strings.Contains(document, "image.toolkit.fluxcd.io") {
			documents = append(documents, strings.ReplaceAll(document, "namespace: iris-green\n", "namespace: "+name+"\n"))
		}
	}
	require.Len(t, documents, 3)
	files := map[string]string{"images.yaml": strings.Join(documents, "\n---\n")}
	require.Contains(t, team.push(t, metav1.ConditionFalse, files), "cannot patch resource")
	require.Nil(t, w.get(t, "image.toolkit.fluxcd.io/v1", "ImagePolicy", name, "web"))

	piece, err := cluster.DecodeFile(filepath.Join(suite.Root, "config/pieces/flux-images.yaml"))
	require.NoError(t, err)
	w.apply(t, piece...)
	t.Cleanup(func() { require.NoError(t, w.Client.Delete(suite.Within(t), piece[0])) })
	suite.Eventually(t, func(context.Context) error {
		if rules := fmt.Sprint(w.get(t, "rbac.authorization.k8s.io/v1", "ClusterRole", "", "landwaiter-reconciler").Object["rules"]); !strings.Contains(rules,
			"imagepolicies") {
			return errors.New("the role does not have the piece yet")
		}
		return nil
	})
	files["again.yaml"] = configMap(name, "again")
	team.push(t, metav1.ConditionTrue, files)
	for _, kind := range []string{"ImageRepository", "ImagePolicy", "ImageUpdateAutomation"} {
		require.NotNil(t, w.get(t, "image.toolkit.fluxcd.io/v1", kind, name, "web"), kind)
	}
}
