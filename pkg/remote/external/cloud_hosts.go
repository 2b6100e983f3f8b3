package external

import (
	"strings"

	"github.com/landwaiter/landwaiter/pkg/remote/egress"
)

// Serves reports whether a host is a registry of a provider, so that the provider's
// credentials may go there.
func Serves(provider, host string) bool {
	switch provider {
	case "ECR":
		_, ok := ecrAPI(host)
		return ok
	case "ACR":
		_, ok := azureFor(host, ".azurecr.io", ".azurecr.cn", ".azurecr.us")
		return ok
	case "GAR":
		if location, ok := strings.CutSuffix(host, "-docker.pkg.dev"); ok {
			return egress.IsLabel(location)
		}
		location, ok := strings.CutSuffix(host, ".gcr.io")
		return host == "gcr.io" || (ok && egress.IsLabel(location))
	case "GHCR":
		return host == ghcrHost
	}
	return false
}

// isRegion reports whether s has the form of an AWS region, such as us-gov-west-1. It
// becomes part of host names.
func isRegion(s string) bool {
	parts := strings.Split(s, "-")
	if !egress.IsLabel(s) || len(parts) < 3 || len(parts) > 4 || len(parts[0]) != 2 || !isNumber(parts[len(parts)-1], 1, 2) {
		return false
	}
	for _, part := range parts[:len(parts)-1] {
		if part == "" || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz") != "" {
			return false
		}
	}
	return true
}

func isNumber(s string, least, most int) bool {
	return len(s) >= least && len(s) <= most && strings.Trim(s, "0123456789") == ""
}

// awsDomain returns the domain of AWS that has a region.
func awsDomain(region string) string {
	if strings.HasPrefix(region, "cn-") {
		return "amazonaws.com.cn"
	}
	return "amazonaws.com"
}

// ecrAPI returns the region of a registry and reports whether it is one of Elastic
// Container Registry: 123456789012.dkr.ecr.eu-central-1.amazonaws.com.
func ecrAPI(host string) (region string, ok bool) {
	parts := strings.SplitN(host, ".", 5)
	if len(parts) != 5 || !isNumber(parts[0], 12, 12) || parts[1] != "dkr" || (parts[2] != "ecr" && parts[2] != "ecr-fips") ||
		!isRegion(parts[3]) || parts[4] != awsDomain(parts[3]) {
		return "", false
	}
	return parts[3], true
}

// azure is one of Azure's clouds.
type azure struct {
	authority string // who gives tokens
	vault     string // the scope of a token for Key Vault
	exchange  string // the audience of tokens of ServiceAccounts
}

// azureFor returns the cloud whose suffix a host has, in the order public, China, US
// government. Before the suffix there is one label.
func azureFor(host string, public, china, government string) (azure, bool) {
	for suffix, cloud := range map[string]azure{
		public:     {"login.microsoftonline.com", "https://vault.azure.net/.default", audienceAzure},
		china:      {"login.partner.microsoftonline.cn", "https://vault.azure.cn/.default", audienceAzure + "China"},
		government: {"login.microsoftonline.us", "https://vault.usgovcloudapi.net/.default", audienceAzure + "USGov"},
	} {
		if name, ok := strings.CutSuffix(host, suffix); ok && egress.IsLabel(name) {
			return cloud, true
		}
	}
	return azure{}, false
}
