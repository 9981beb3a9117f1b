#!/bin/sh
# Initializes the primary of deploy/compose.yaml: creates the roles of deploy/roles.sql, the role and the replication
# slot of the standby, and the role of HAProxy. Each role except haproxy has a separate password.
set -eu
psql --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" --file="${ROLES_FILE:-/deploy/roles.sql}"
psql --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" --set=ON_ERROR_STOP=1 \
  --set=owner="$OWNER_PASSWORD" --set=service="$SERVICE_PASSWORD" --set=admin="$ADMIN_PASSWORD" \
  --set=standby="$STANDBY_PASSWORD" <<'SQL'
create role standby login replication;
create role haproxy login;
alter role standby password :'standby';
alter role prompts_owner password :'owner';
alter role prompts_service password :'service';
alter role prompts_admin password :'admin';
-- Keeps up to 4 GB of the WAL that the standby has not received. A standby that is further behind needs a new copy:
-- delete its volume.
select pg_create_physical_replication_slot('standby');
alter system set max_slot_wal_keep_size = '4GB';
select pg_reload_conf();
SQL
echo "host replication standby all scram-sha-256" >>"$PGDATA/pg_hba.conf"
# HAProxy's checks cannot send a password. The role has no privileges, and the database postgres has no data. The first
# rule that matches a connection decides, so this rule comes first.
sed -i '1i host postgres haproxy all trust' "$PGDATA/pg_hba.conf"
