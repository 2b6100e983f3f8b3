package live

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// held is a repository with one image and what refers to it.
type held struct {
	verify.Repository

	digest digest.Digest
	lists  []digest.Digest
	lacks  bool
	down   error
}

// Resolve implements [verify.Repository].
func (p *held) Resolve(_ context.Context, ref image.Reference) (ocispec.Descriptor, error) {
	if p.lacks {
		return ocispec.Descriptor{}, verify.Permanent(policy.ReasonNotFound, fmt.Errorf("%s is not here", ref))
	}
	return ocispec.Descriptor{Digest: p.digest}, p.down
}

// Referrers implements [verify.Repository].
func (p *held) Referrers(context.Context, image.Reference) ([]ocispec.Descriptor, error) {
	var found []ocispec.Descriptor
	for _, d := range p.lists {
		found = append(found, ocispec.Descriptor{Digest: d})
	}
	return found, p.down
}

func TestComparingSaysWhatTheOriginHas(t *testing.T) {
	for name, c := range map[string]struct {
		arrange func(mirror, origin *held)
		said    []string
		missing int
	}{
		"nothing more": {func(_, _ *held) {}, []string{"the image is the same at the origin", "the origin has no evidence"}, 0},
		"a signature": {func(_, origin *held) { origin.lists = []digest.Digest{digest.FromString("x")} },
			[]string{"the same", "the origin has 1 signatures or attestations"}, 1},
		"the image":      {func(mirror, _ *held) { mirror.lacks = true }, []string{"the mirror lacks it", "no evidence"}, 0},
		"another digest": {func(_, origin *held) { origin.digest = digest.FromString("z") }, []string{"another image", "no evidence"}, 0},
		"an origin that is down": {func(_, origin *held) { origin.down = errors.New("it is down") },
			[]string{"the origin was not read", "not all evidence was listed"}, 0},
		"neither": {func(mirror, origin *held) { mirror.lacks, origin.lacks = true, true }, []string{"neither has the image"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			mirror, origin := &held{digest: digest.FromString("app")}, &held{digest: digest.FromString("app")}
			c.arrange(mirror, origin)
			compared := compare(t.Context(), locations(verify.RoleMirror, mirror), locations(verify.RoleOrigin, origin), app(t))
			require.Len(t, compared.Missing, c.missing)
			said := compared.Sentences()
			require.Len(t, said, len(c.said))
			for i, want := range c.said {
				require.Contains(t, said[i], want)
			}
		})
	}
	own := locations(verify.RoleOrigin, &held{})
	require.Contains(t, compare(t.Context(), own, own, app(t)).Sentences()[0], "no mirror and no evidence repository applies")
}

// locations returns those of an image whose content and evidence are in one repository.
func locations(role verify.Role, p *held) verify.Locations {
	all := []verify.Location{{Name: string(role) + ".example.com/app", Role: role, Repository: p}}
	return verify.Locations{Content: all, Evidence: all}
}

func app(t *testing.T) image.Reference {
	t.Helper()
	ref, err := image.Parse("r.example.com/app:v1")
	require.NoError(t, err)
	return ref
}
