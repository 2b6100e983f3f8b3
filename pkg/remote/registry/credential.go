package registry

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// dockerConfig is the part of Docker's config.json that pull secrets use.
type dockerConfig struct {
	Auths       map[string]dockerAuth `json:"auths"`
	CredsStore  string                `json:"credsStore"`
	CredHelpers map[string]string     `json:"credHelpers"`
}

type dockerAuth struct {
	Auth          string `json:"auth"`
	Username      string `json:"username"`
	Password      string `json:"password"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// ParseDockerConfig reads a pull secret: the content of .dockerconfigjson, or of
// the older .dockercfg, at most 256 KiB and 256 hosts. It returns credentials by
// normalised host. Credential helpers are refused, because they are programs.
// Errors never hold what was read.
func ParseDockerConfig(text []byte) (map[string]Credential, error) {
	if len(text) > maxDockerConfigBytes {
		return nil, fmt.Errorf("the docker config is %d bytes large, the limit is %d", len(text), maxDockerConfigBytes)
	}
	var config dockerConfig
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, errors.New("the docker config is not JSON of the form that kubectl create secret docker-registry makes")
	}
	if config.CredsStore != "" || len(config.CredHelpers) > 0 {
		return nil, errors.New("the docker config asks for a credential helper, which cannot be run here; put the credential itself into it")
	}
	if config.Auths == nil {
		// The older form is the map alone; it parsed above with every field unknown.
		if err := json.Unmarshal(text, &config.Auths); err != nil {
			return nil, errors.New("the docker config has no auths")
		}
	}
	if len(config.Auths) == 0 {
		return nil, errors.New("the docker config holds no credential")
	}
	if len(config.Auths) > maxDockerConfigHosts {
		return nil, fmt.Errorf("the docker config has %d hosts, the limit is %d", len(config.Auths), maxDockerConfigHosts)
	}
	credentials := make(map[string]Credential, len(config.Auths))
	for key, entry := range config.Auths {
		host, err := configHost(key)
		if err != nil {
			return nil, err
		}
		credential, err := entry.credential()
		if err != nil {
			return nil, fmt.Errorf("the docker config's entry for %s: %w", host, err)
		}
		// Two spellings of one host, as docker login may leave for its Hub, may repeat
		// a credential; which of two different ones to use would be a guess.
		if earlier, twice := credentials[host]; twice && earlier != credential {
			return nil, fmt.Errorf("the docker config has two different entries for %s", host)
		}
		credentials[host] = credential
	}
	return credentials, nil
}

// configHost reads a key of auths: a host, or a URL as Docker writes for its Hub
// ("https://index.docker.io/v1/"). Keys with a path would be for a part of a
// registry, which cannot be kept, so only those of Docker's API are taken.
func configHost(key string) (string, error) {
	rest := strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
	host, path, _ := strings.Cut(rest, "/")
	switch strings.Trim(path, "/") {
	case "", "v1", "v2":
	default:
		return "", fmt.Errorf("the docker config's entry %.80q has a path; credentials are for whole hosts", key)
	}
	normalised, err := image.NormaliseHost(host)
	if err != nil {
		return "", fmt.Errorf("the docker config's entry %.80q is not for a registry host", key)
	}
	return normalised, nil
}

func (a dockerAuth) credential() (Credential, error) {
	c := Credential{Username: a.Username, Password: a.Password, IdentityToken: a.IdentityToken, RegistryToken: a.RegistryToken}
	if a.Auth != "" {
		decoded, err := base64.StdEncoding.DecodeString(a.Auth)
		if err != nil {
			return Credential{}, errors.New("auth is not base64")
		}
		username, password, found := strings.Cut(strings.TrimRight(string(decoded), "\x00"), ":")
		if !found {
			return Credential{}, errors.New("auth is not a user name and a password with a colon between them")
		}
		c.Username, c.Password = username, password
	}
	if c == (Credential{}) {
		return Credential{}, errors.New("it is empty")
	}
	return c, nil
}
