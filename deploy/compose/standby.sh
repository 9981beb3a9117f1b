#!/bin/sh
# Copies the primary of deploy/compose.yaml at the first start, and then runs as its hot standby.
set -eu
umask 077
chmod 700 "$PGDATA"
if [ ! -e "$PGDATA/standby.copied" ]; then
  # Deletes the incomplete copy of an interrupted start.
  find "$PGDATA" -mindepth 1 -delete
  pg_basebackup --host="$PRIMARY_HOST" --port="${PRIMARY_PORT:-5432}" --username=standby --pgdata="$PGDATA" \
    --slot=standby --write-recovery-conf --checkpoint=fast
  touch "$PGDATA/standby.copied"
fi
exec postgres "$@"
