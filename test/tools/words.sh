#!/usr/bin/env bash
# Checks what people read with Vale and the style in .vale: pages, comments of Go and YAML,
# descriptions in YAML, and what programs say. Every error is printed and fails; warnings are
# counted, or printed too with WARNINGS=1. With files as arguments it checks only these.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

vale=$(test/tools/vale/build.sh)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# check CONFIG FILE... prints one line for each finding.
check() {
  "$vale" --no-global --no-exit --output=line --config="$1" "${@:2}"
}

# What the style must find, and what it must leave: a rule that stops working is noticed.
{
  check .vale.ini .vale/planted/page.md .vale/planted/comment.go .vale/planted/values.yaml
  check .vale/messages.ini .vale/planted/text.go .vale/planted/values.yaml
  check .vale/help.ini .vale/planted/text.go
} | awk -F: '{print $1 ":" $2 ":" $4}' | sort -V >"$scratch/planted"
if ! diff -u .vale/planted/expected "$scratch/planted" >&2; then
  echo "words: Vale no longer finds what is planted in .vale/planted" >&2
  exit 1
fi

# all lists every file with words of ours. What is generated is checked where it comes from.
all() {
  find . \( -name .git -o -name bin -o -name dist -o -name node_modules -o -name testdata -o -path ./.vale \) -prune -o \
    -type f \( -name '*.md' -o -name '*.go' -o -name '*.yaml' -o -name '*.yml' \) -print |
    sed 's|^\./||' |
    grep -vE '^(config/(crd|default|guardrails)/|charts/[^/]+/files/(crds|pieces|reports)/|docs/reference/flags\.md$)|zz_generated|/\.vitepress/' | sort
}
if (($#)); then printf '%s\n' "$@"; else all; fi >"$scratch/files"
grep -vE '_test\.go$|^test/|\.md$' "$scratch/files" >"$scratch/texts" || true
grep -E '\.go$' "$scratch/texts" >"$scratch/programs" || true


export -f check
export vale
: >"$scratch/found"
for pass in ".vale.ini $scratch/files" ".vale/messages.ini $scratch/texts" ".vale/help.ini $scratch/programs"; do
  xargs -r -d '\n' -a "${pass#* }" "$BASH" -c 'check "$@"' check "${pass% *}" >>"$scratch/found"
done

# The rules that only warn are those whose files say so.
warns=$(grep -l '^level: warning' .vale/styles/Landwaiter/*.yml | sed 's|.*/\(.*\)\.yml|Landwaiter.\1|' | paste -sd'|')
grep -vE ":($warns):" "$scratch/found" | sort -V >"$scratch/errors" || true
grep -E ":($warns):" "$scratch/found" | sort -V >"$scratch/warnings" || true
[[ -z ${WARNINGS:-} ]] || cat "$scratch/warnings"
cut -d: -f4 "$scratch/warnings" | sort | uniq -c | awk '{print "words: " $1 " warnings of " $2}'
if [[ -s $scratch/errors ]]; then
  cat "$scratch/errors" >&2
  echo "words: $(wc -l <"$scratch/errors") errors; docs/contribute/language.md has the rules" >&2
  exit 1
fi
echo "words: no error in $(wc -l <"$scratch/files") files"
