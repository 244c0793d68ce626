#!/usr/bin/env bash
# Deploys, undeploys and shows connectors through Kafka Connect's REST API: of a Connect worker, or of Heliograph.
#
#   deploy.sh deploy|undeploy|redeploy|status [FOLDER]
#
# FOLDER holds one JSON file per connector, named after it, with its config. CONNECT_URL is the worker's address.
# Needs curl and jq.
set -euo pipefail

url=${CONNECT_URL:-http://localhost:8083}
folder=${2:-$(dirname "$0")}

call() { # METHOD PATH [CURL OPTIONS]: prints the body of the answer; ends with a message if it is an error
  local method=$1 path=$2 answer status
  shift 2
  answer=$(curl -sS -X "$method" -w '\n%{http_code}' "$@" "$url$path")
  status=${answer##*$'\n'}
  answer=${answer%$'\n'*}
  if [ "$status" -ge 400 ]; then
    echo "$method $path: $status $(jq -r .message <<<"$answer")" >&2
    return 1
  fi
  echo "$answer"
}

names() {
  for file in "$folder"/*.json; do basename "$file" .json; done
}

state() { # NAME: the connector's state and its tasks', empty if there is no such connector yet
  curl -sS "$url/connectors/$1/status" | jq -r 'if .error_code then "" else [.connector.state, .tasks[].state] | join(" ") end'
}

wait_for() { # NAME STATE...: until the state matches one of the patterns
  local name=$1 now
  shift
  for _ in $(seq 600); do
    now=$(state "$name")
    for wanted in "$@"; do
      # shellcheck disable=SC2053
      if [[ $now == $wanted ]]; then return; fi
    done
    if [[ $now == *FAILED* ]]; then break; fi
    sleep 0.1
  done
  echo "$name is '$now'" >&2
  curl -sS "$url/connectors/$name/status" | jq -r '.connector.trace // empty, (.tasks[]?.trace // empty)' >&2
  return 1
}

deploy() {
  for name in $(names); do
    call PUT "/connectors/$name/config" -H 'Content-Type: application/json' --data "@$folder/$name.json" |
      jq -r '"deployed \(.name): \(.config["connector.class"])"'
  done
  for name in $(names); do wait_for "$name" "RUNNING RUNNING*"; done
}

undeploy() {
  for name in $(names); do
    if call GET /connectors | jq -e --arg name "$name" 'index($name)' >/dev/null; then
      call DELETE "/connectors/$name" >/dev/null
      wait_for "$name" ""
      echo "undeployed $name"
    fi
  done
}

status() {
  call GET '/connectors?expand=status' |
    jq -r 'to_entries | sort_by(.key)[] | .value.status | [.name, .type, .connector.state, "tasks:", .tasks[].state] | join(" ")'
}

case ${1:-} in
  deploy | undeploy | status) "$1" ;;
  redeploy) undeploy && deploy ;;
  *)
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
