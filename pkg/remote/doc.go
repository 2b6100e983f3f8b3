// Package remote has no code of its own. Its packages fetch from registries and other
// servers, and keep answers and verdicts for a time.
//
//   - egress: the guarded way out: host lists, address guard, proxies, limits.
//   - registry: OCI registries, over oras-go; nothing else asks them.
//   - prefetch: keeps values that take a network ready, so that no request waits for them.
//   - external: trust material and registry logins of clouds, Vault and TUF repositories.
//   - cache: verdicts, in memory and sealed in Redis.
//
// Every external answer is bounded in bytes and time, and counted to the quota owner that
// caused it.
package remote
