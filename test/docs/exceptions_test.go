package docs

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// The resources are as if they had been created on the day on which the page was written.
func TestTheResourcesOfThePageOnExceptionsAreInForce(t *testing.T) {
	written := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	var o resource.Objects
	for _, text := range resources(t, "docs/howto/exceptions.md") {
		for _, document := range strings.Split(text, "\n---\n") {
			var head metav1.TypeMeta
			require.NoError(t, yaml.Unmarshal([]byte(document), &head))
			kind, ok := v1beta1.KindNamed(head.Kind)
			require.True(t, ok, head.Kind)
			object := kind.New()
			require.NoError(t, yaml.UnmarshalStrict([]byte(document), object))
			object.SetCreationTimestamp(metav1.NewTime(written))
			o.Resources = append(o.Resources, object)
		}
	}
	require.Len(t, o.Resources, 3)
	s, problems := resolve.New(o, nil, resolve.Outside{Registry: func(registry.Access) verify.Registry { return nil }})
	require.Empty(t, problems)
	require.Empty(t, conditions.Ended(s, written))
	require.Len(t, s.For("batch").Exceptions, 1)
	require.Len(t, s.For("team-a").Exceptions, 1)
	require.Empty(t, s.For("team-b").Exceptions)
}
