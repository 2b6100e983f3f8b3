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

// never is the time of the page, which nobody may leave as it is.
const never = "2099-01-01T00:00:00Z"

// onExceptions returns the resources of the page as if they had been created at a time, with another
// end than the page has.
func onExceptions(t *testing.T, created time.Time, until string) (o resource.Objects) {
	t.Helper()
	for _, text := range resources(t, "docs/howto/exceptions.md") {
		for _, document := range strings.Split(text, "\n---\n") {
			require.Equal(t, 1, strings.Count(document, never))
			document = strings.Replace(document, never, until, 1)
			var head metav1.TypeMeta
			require.NoError(t, yaml.Unmarshal([]byte(document), &head))
			kind, ok := v1beta1.KindNamed(head.Kind)
			require.True(t, ok, head.Kind)
			object := kind.New()
			require.NoError(t, yaml.UnmarshalStrict([]byte(document), object))
			object.SetCreationTimestamp(metav1.NewTime(created))
			o.Resources = append(o.Resources, object)
		}
	}
	require.Len(t, o.Resources, 3)
	return o
}

func compiled(o resource.Objects) (*resolve.Snapshot, []resource.Problem) {
	return resolve.Empty(resolve.Outside{Registry: func(registry.Access) verify.Registry { return nil }}).Next(resolve.Group(o), nil)
}

func TestTheResourcesOfThePageOnExceptionsAreInForce(t *testing.T) {
	onAnyDay(t, "", func(t *testing.T) {
		now := time.Now().UTC()
		// as the command of the page prints it
		s, problems := compiled(onExceptions(t, now, now.AddDate(0, 0, 7).Format("2006-01-02T15:04:05Z")))
		require.Empty(t, problems)
		require.Empty(t, conditions.Ended(s, now))
		require.Len(t, s.For("batch").Exceptions, 1)
		require.Len(t, s.For("team-a").Exceptions, 1)
		require.Empty(t, s.For("team-b").Exceptions)
	})
}

// Nobody pastes an exception that lasts longer than meant, and the message has the time to write.
func TestTheDatesOfThePageOnExceptionsAreRefused(t *testing.T) {
	onAnyDay(t, "", func(t *testing.T) {
		now := time.Now().UTC()
		s, problems := compiled(onExceptions(t, now, never))
		require.Empty(t, s.For("batch").Exceptions)
		require.Empty(t, s.For("team-a").Exceptions)
		require.Len(t, problems, 3)
		for i, latest := range []time.Time{now.AddDate(0, 0, 90), now.AddDate(0, 0, 365), now.AddDate(0, 0, 90)} {
			require.Contains(t, problems[i].Message, "last until "+latest.Format(time.RFC3339))
			require.Contains(t, problems[i].Message, "write that or an earlier time")
		}
	})
}
