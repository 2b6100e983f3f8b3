package image

import (
	"errors"
	"fmt"
	"strings"
)

// Template makes the name of a repository at a fixed host from an image's name. The zero
// value makes none.
type Template struct{ host, path string }

// The placeholders of a [Template].
const (
	placeRepository = "{repository}"
	placeRegistry   = "{registry}"
)

// ParseTemplate checks a host and the path of a repository below it. In the path,
// {repository} stands for the image's repository and {registry} for its host; the host
// has neither, so an image's name never chooses the server.
func ParseTemplate(host, path string) (Template, error) {
	normalised, err := NormaliseHost(host)
	switch {
	case strings.ContainsAny(host, "{}"):
		return Template{}, fmt.Errorf("host %.80q has a placeholder; {repository} and {registry} can only be in the path", host)
	case err != nil:
		return Template{}, err
	case path == "":
		return Template{}, fmt.Errorf("the repository at %s is missing", normalised)
	}
	rest := strings.NewReplacer(placeRepository, "", placeRegistry, "").Replace(path)
	if strings.ContainsAny(rest, "{}") {
		return Template{}, fmt.Errorf("%.80q has a placeholder other than {repository} and {registry}", path)
	}
	t := Template{host: normalised, path: path}
	if _, err := t.For(Reference{Host: "registry.example.com:5000", Repository: "team/app"}); err != nil {
		return Template{}, err
	}
	return t, nil
}

// Host returns the host of every repository that t makes.
func (t Template) Host() string { return t.host }

// For returns the repository for an image, without tag and digest. A repository cannot
// have a colon, so that of a host's port becomes "_", which no host has.
func (t Template) For(r Reference) (Reference, error) {
	if t == (Template{}) {
		return Reference{}, errors.New("there is no template of a repository")
	}
	path := strings.NewReplacer(placeRepository, r.Repository, placeRegistry, strings.ReplaceAll(r.Host, ":", "_")).Replace(t.path)
	made, err := Parse(t.host + "/" + path)
	if err != nil || made.Digest != "" || made.Name() != t.host+"/"+path && made.Name() != dockerHub+"/library/"+path {
		return Reference{}, fmt.Errorf("%.80q does not make a repository at %s for %.80q: it has to be lower-case segments with / between them", t.path, t.host, r.Name())
	}
	return Reference{Host: made.Host, Repository: made.Repository}, nil
}
