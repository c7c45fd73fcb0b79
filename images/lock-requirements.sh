#!/bin/sh
# Makes requirements.lock from requirements.in: for each package the one wheel that the image installs, by sha256.
# One hash instead of all that a release has, so that equal locks mean equal files in the image.
set -eu
cd "$(dirname "$0")"
report=$(mktemp)
trap 'rm -f "$report"' EXIT
python3 -m pip install --quiet --dry-run --ignore-installed --report "$report" --target /nonexistent \
  --implementation cp --python-version 3.11 --abi cp311 --abi abi3 --abi none --only-binary=:all: \
  --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 --platform manylinux_2_24_x86_64 \
  --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 --platform manylinux_2_12_x86_64 \
  --platform manylinux_2_5_x86_64 --platform manylinux1_x86_64 \
  --requirement requirements.in
{
  echo "# Made by lock-requirements.sh from requirements.in; do not edit. CPython 3.11, x86-64, glibc 2.28 or later."
  python3 - "$report" <<'PY'
import json, re, sys
rows = []
for item in json.load(open(sys.argv[1]))["install"]:
    meta = item["metadata"]
    name = re.sub(r"[-_.]+", "-", meta["name"]).lower()
    digest = item["download_info"]["archive_info"]["hashes"]["sha256"]
    rows.append(f"{name}=={meta['version']} --hash=sha256:{digest}")
print("\n".join(sorted(rows)))
PY
} > requirements.lock.new
mv requirements.lock.new requirements.lock
