// Package formats has no code of its own. Its packages parse and bound what strangers and users
// write. It is the lowest wing: everything above gets values that were read once, within a limit.
//
//   - image: references and patterns; nowhere else does a string become an image.
//   - intake: bundles, envelopes, in-toto statements, certificates, timestamps and manifests, before any library sees them.
//   - trust: keys, certificates, Sigstore roots and revocation lists.
//
// The packages are pure: they use no network, no Kubernetes and no resource of
// landwaiter.dev.
package formats
