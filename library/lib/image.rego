# Reads image references as container runtimes do.
package lib.image

# The one spelling of a reference: with host, and with library/ at Docker Hub. Undefined for
# what no runtime pulls.
canonical(image) := concat("/", [host, official(host, path)]) if {
  is_string(image)
  not id(image)
  [first, path] := parts(image)
  host := server(first)
  regex.match(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*(:[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127})?(@[a-z0-9]+:[0-9a-f]{32,128})?$`, path)
}

# A node runs whatever it has under an ID, or under one that begins so.
id(image) if regex.match(`(?i)^(sha256|sha384|sha512|blake3):[^/]+$`, image)

# The first part is a host if it has a dot, a port or a capital, or is localhost.
parts(image) := [first, substring(image, count(first) + 1, -1)] if {
  contains(image, "/")
  first := split(image, "/")[0]
  regex.match(`[.:A-Z]|^localhost$`, first)
}

else := ["docker.io", image]

# Docker Hub has four names, and 443 is the port of all who name none.
server(host) := "docker.io" if plain(host) in {"docker.io", "index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"}

else := plain(host)

plain(host) := trim_suffix(lower(host), ":443") if {
  regex.match(`^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)+(:[1-9][0-9]{0,4})?$`, host)
}

else := lower(host) if regex.match(`^([a-zA-Z0-9][a-zA-Z0-9-]*:[1-9][0-9]{0,4}|localhost)$`, host)

official(host, path) := concat("", ["library/", path]) if {
  host == "docker.io"
  path != ""
  not contains(path, "/")
}

else := path

# A host alone becomes one with a slash.
normalised(prefix) := concat("/", [host, official(host, path)]) if {
  first := split(prefix, "/")[0]
  host := server(first)
  path := substring(prefix, count(first) + 1, -1)
}

# A reference is under a prefix if it goes on after a boundary. Only after a repository can
# that be a tag or a digest: after a host, a colon begins a port.
starts(prefix) := {prefix} if endswith(prefix, "/")

else := {concat("", [prefix, boundary]) | some boundary in ["/", ":", "@"]}

# Images that a constraint exempts are compared as text: exactly, or below a path that ends in "/*".
exempt(image, patterns) if {
  is_string(image)
  image in patterns
}

exempt(image, patterns) if {
  is_string(image)
  some pattern in patterns
  endswith(pattern, "/*")
  startswith(image, trim_suffix(pattern, "*"))
}
