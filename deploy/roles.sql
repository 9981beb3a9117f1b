-- The roles of prompt-retrieval in PostgreSQL, each with the least privileges that it needs:
--
--   prompts_owner    owns the tables: for `migrate`
--   prompts_service  reads, and stores when keys were last used: for `serve` and `createPromptApi`
--   prompts_admin    reads and writes rows of every table except the record of migrations, which it only reads,
--                    and `audit_events`, which it reads and adds to: for all other commands
--
-- Run the file in the database of the service, as a superuser. Since PostgreSQL 15, the owner of the database may also
-- run the file, if the owner has CREATEROLE:
--
--   psql --dbname=prompts --file=deploy/roles.sql
--
-- Run the file before the first `migrate`, and once more after that `migrate`: some privileges are granted on single
-- columns and tables, which must exist. The tables of later migrations get their privileges when they are created. You can
-- run the file at any time. The file changes nothing if the roles already have their privileges.
--
-- `--set=owner=NAME`, `--set=service=NAME` and `--set=admin=NAME` select other names. If the tables exist and have
-- another owner, select that owner with `--set=owner=NAME`. Set passwords with psql's \password.

\set ON_ERROR_STOP on
\if :{?owner}
\else
  \set owner prompts_owner
\endif
\if :{?service}
\else
  \set service prompts_service
\endif
\if :{?admin}
\else
  \set admin prompts_admin
\endif

begin;

select format('create role %I login', role)
from unnest(array[:'owner', :'service', :'admin']) role
where not exists (select from pg_roles where rolname = role)
\gexec

-- Only a member of the owner role may change the default privileges of this role. A superuser needs no membership.
select format('grant %I to current_user', :'owner')
where not pg_has_role(:'owner', 'usage')
\gexec

-- PostgreSQL 14 lets every role create tables in the schema public.
revoke create on schema public from public;
grant usage, create on schema public to :"owner";
grant usage on schema public to :"service", :"admin";
grant connect on database :"DBNAME" to :"owner", :"service", :"admin";

-- Privileges on the tables of later migrations.
alter default privileges for role :"owner" in schema public grant select on tables to :"service";
alter default privileges for role :"owner" in schema public
  grant select, insert, update, delete on tables to :"admin";

-- Privileges on the tables that exist.
select
  format('grant select on %s to %I', oid::regclass, :'service'),
  format('grant select, insert, update, delete on %s to %I', oid::regclass, :'admin')
from pg_class
where relnamespace = 'public'::regnamespace and relkind = 'r' and pg_get_userbyid(relowner) = :'owner'
\gexec

select to_regclass('public.api_keys') is not null as has_tables
\gset
\if :has_tables
  grant update (last_used_at) on public.api_keys to :"service";
  -- The administrator only reads the record of the migrations that ran.
  revoke insert, update, delete on public.prompt_retrieval_migrations from :"admin";
\endif

-- The service reads neither the audit log nor the states that imports of files recorded. The administrator can add audit
-- events, but cannot change or delete them.
select format('revoke select on %s from %I', oid::regclass, :'service')
from pg_class
where relnamespace = 'public'::regnamespace and relname in ('audit_events', 'imported_states')
\gexec
select format('revoke update, delete on public.audit_events from %I', :'admin')
where to_regclass('public.audit_events') is not null
\gexec

commit;

\if :has_tables
\else
  \echo 'The tables do not exist yet: run migrate as the owner, and then this file again.'
\endif
