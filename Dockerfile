FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY scripts/remove-build.mjs scripts/copy-assets.mjs scripts/
COPY src src
RUN npm run build && npm prune --omit=dev

FROM node:24-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY examples examples
# The journal must outlive the container: a volume is mounted here, owned by the user that the process runs as.
RUN mkdir -p /data/journal && chown -R node:node /data
USER node
ENV SEND_JOURNAL_DIR=/data/journal
VOLUME /data
EXPOSE 3000 9464
ENTRYPOINT ["node", "dist/cli/main.js"]
CMD ["worker"]
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.HEALTH_PORT||9464}/healthz`).then((r)=>process.exit(r.ok?0:1),()=>process.exit(1))"]
