/**
 * The use cases of operators, for Effect programs: workspaces, users, keys, imports and exports. Programs that only
 * serve and read prompts do not load this module.
 *
 * @module
 */

export { Administration } from "./application/Administration.ts"
export { Actor } from "./application/ports/WorkspaceStore.ts"
export { administrationLayer, makeActorLayer } from "./runtime/layers/CommandLayers.ts"
