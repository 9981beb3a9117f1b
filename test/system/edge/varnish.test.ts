import { startVarnish } from "../../support/programs/edge.ts"
import { cacheSuite } from "./suite.ts"

cacheSuite({ name: "Varnish", start: startVarnish })
