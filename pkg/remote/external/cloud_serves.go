package external

// Serves reports whether a host is a registry of a provider, so that its logins may be
// sent there.
func Serves(provider, host string) bool { return registryOf(provider, host) }
