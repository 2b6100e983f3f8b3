package intake_test

import (
	"fmt"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/formats/intake"
)

const (
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	dockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
)

func descriptor(mediaType, more string) string {
	return fmt.Sprintf(`{"mediaType":%q,"digest":"sha256:%s","size":2%s}`, mediaType, strings.Repeat("0", 64), more)
}

func manifestWith(members string) string {
	return `{"schemaVersion":2` + members + `,"layers":[` + descriptor("a/b", `,"annotations":{"a":"b"}`) + `]}`
}

func indexWith(members string) string {
	return `{"schemaVersion":2` + members + `,"manifests":[` + descriptor(ocispec.MediaTypeImageManifest, "") + `]}`
}

func TestManifestsAreReadOneWay(t *testing.T) {
	for _, mediaType := range []string{"", ocispec.MediaTypeImageManifest, dockerManifest} {
		manifest, err := intake.Manifest([]byte(manifestWith(`,"config":`+descriptor("c/d", ""))), mediaType)
		require.NoError(t, err)
		require.Len(t, manifest.Layers, 1)
		require.Equal(t, "c/d", manifest.Config.MediaType)
	}
	for name, c := range map[string]struct {
		content, mediaType string
		limit              bool
	}{
		"an index too":                {manifestWith(`,"manifests":[]`), "", false},
		"an index too, in upper case": {manifestWith(`,"Manifests":[]`), "", false},
		"an index by its type":        {manifestWith(`,"mediaType":"` + ocispec.MediaTypeImageIndex + `"`), "", false},
		"listed as an index":          {manifestWith(""), ocispec.MediaTypeImageIndex, false},
		"listed as a list":            {manifestWith(""), dockerList, false},
		"listed as something else":    {manifestWith(`,"mediaType":"` + ocispec.MediaTypeImageManifest + `"`), dockerManifest, false},
		"layers twice":                {manifestWith(`,"layers":[]`), "", false},
		"layers twice, as a reader that ignores case sees": {manifestWith(`,"LAYERS":[]`), "", false},
		"layers twice, with an escape":                     {manifestWith(`,"l\u0061yers":[]`), "", false},
		"layers twice, with a long s":                      {manifestWith(`,"layer` + "\u017f" + `":[]`), "", false},
		"another case":                                     {strings.Replace(manifestWith(""), "layers", "Layers", 1), "", false},
		"another version":                                  {strings.Replace(manifestWith(""), "2", "1", 1), "", false},
		"no version":                                       {`{"layers":[]}`, "", false},
		"a list":                                           {"[]", "", false},
		"null":                                             {"null", "", false},
		"trailing data":                                    {manifestWith("") + "{}", "", false},
		"a layer without a digest":                         {`{"schemaVersion":2,"layers":[{}]}`, "", false},
		"1001 layers": {`{"schemaVersion":2,"layers":[` + strings.Repeat(descriptor("a/b", "")+",", 1000) +
			descriptor("a/b", "") + `]}`, "", true},
		"a long annotation": {manifestWith(`,"annotations":{"a":"` + strings.Repeat("x", 64<<10) + `"}`), "", true},
		"many annotations":  {manifestWith(`,"annotations":{` + names(65) + `}`), "", true},
		"many names":        {manifestWith(`,"new":{` + names(129) + `}`), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := intake.Manifest([]byte(c.content), c.mediaType)
			requireFault(t, c.limit, err)
		})
	}
}

func names(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"%d":""`, i))
	}
	return strings.Join(all, ",")
}

func TestADocumentOfTwoKindsIsNoIndex(t *testing.T) {
	for _, mediaType := range []string{ocispec.MediaTypeImageIndex, dockerList} {
		manifests, err := intake.Index([]byte(indexWith(`,"mediaType":"`+mediaType+`"`)), mediaType, 1)
		require.NoError(t, err)
		require.Len(t, manifests, 1)
	}
	for name, c := range map[string]struct {
		content, mediaType string
		limit              bool
	}{
		"config":                  {indexWith(`,"config":{}`), "", false},
		"layers":                  {indexWith(`,"layers":[]`), "", false},
		"LAYERS":                  {indexWith(`,"LAYERS":[]`), "", false},
		"fsLayers":                {indexWith(`,"fsLayers":[]`), "", false},
		"blobs":                   {indexWith(`,"blobs":[]`), "", false},
		"manifests twice":         {indexWith(`,"Manifests":[]`), "", false},
		"a manifest by its type":  {indexWith(`,"mediaType":"` + ocispec.MediaTypeImageManifest + `"`), "", false},
		"a list by its type":      {indexWith(`,"mediaType":"` + dockerList + `"`), "", false},
		"stated to be a manifest": {indexWith(""), ocispec.MediaTypeImageManifest, false},
		"an index in it":          {strings.Replace(indexWith(""), ocispec.MediaTypeImageManifest, ocispec.MediaTypeImageIndex, 1), "", false},
		"an entry without a type": {strings.Replace(indexWith(""), ocispec.MediaTypeImageManifest, "", 1), "", false},
		"no manifest":             {`{"schemaVersion":2,"manifests":[]}`, "", true},
		"more manifests than wanted": {`{"schemaVersion":2,"manifests":[` + descriptor(ocispec.MediaTypeImageManifest, "") + "," +
			descriptor(ocispec.MediaTypeImageManifest, "") + `]}`, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			mediaType := c.mediaType
			if mediaType == "" {
				mediaType = ocispec.MediaTypeImageIndex
			}
			_, err := intake.Index([]byte(c.content), mediaType, 1)
			requireFault(t, c.limit, err)
		})
	}
}
